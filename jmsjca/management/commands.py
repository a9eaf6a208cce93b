"""The commands of the command line: the tree, and those that form no group of their own."""

import tomllib
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter
from typing import Annotated, cast

import typer

from jmsjca import __version__
from jmsjca.destinations import Destination, Queue
from jmsjca.errors import ConfigurationError, JMSError, ProviderNotInstalledError
from jmsjca.management.dead_letter_commands import dead_letter_app
from jmsjca.management.presentation import JsonOption, broker_url, busy, print_json, print_output, print_rows
from jmsjca.management.queue_commands import queue_app, selector_app
from jmsjca.management.server_commands import console_app, mcp_app, relay_app
from jmsjca.management.worker_commands import worker_app
from jmsjca.messages.message import TextMessage
from jmsjca.outbound.connection import Connection
from jmsjca.outbound.factory import ConnectionFactory
from jmsjca.outbound.session import Session
from jmsjca.providers.embedded import maintenance

__all__ = ["app", "bench_app", "file_app", "spark_app"]

file_app = typer.Typer(rich_markup_mode=None, help="Check, compact and back up the file of an embedded broker.")

_FileArgument = Annotated[Path, typer.Argument(help="The file of the broker.")]


@file_app.command()
def check(file: _FileArgument, json: JsonOption = False) -> int:
    """Read the whole file, and list its faults. The exit status is 1 if there are any."""
    with busy("checking"):
        faults = maintenance.check(_existing(file))
    rows = [{"file": file, "fault": fault} for fault in faults] or [{"file": file, "fault": None}]
    print_rows(rows, as_json=json)
    return int(bool(faults))


@file_app.command()
def compact(file: _FileArgument, json: JsonOption = False) -> None:
    """Release unused space to the disk. Processes that use the file wait meanwhile."""
    with busy("compacting"):
        freed = maintenance.compact(_existing(file))
    print_rows([{"file": file, "freed_bytes": freed}], as_json=json)


@file_app.command()
def backup(
    file: _FileArgument,
    target: Annotated[Path, typer.Argument(help="The new file.")],
    json: JsonOption = False,
) -> None:
    """Copy the file, as it is at one moment, while processes may use it. The new file is checked."""
    with busy("copying"):
        copied = maintenance.backup(_existing(file), target.resolve())
    print_rows([{"file": file, "backup": target, "bytes": copied}], as_json=json)


def _existing(file: Path) -> Path:
    """Return the absolute path of a file that exists.

    Raises:
        ConfigurationError: There is no such file.
    """
    if not file.is_file():
        raise ConfigurationError(f"There is no file {str(file)!r:.200}: name the file of an embedded broker.")
    return file.resolve()


spark_app = typer.Typer(rich_markup_mode=None, help="Check and repair the files of Spark queries.")


@spark_app.callback()
def spark() -> None:
    """Check and repair the files of Spark queries."""


@spark_app.command("repair")
def repair_staging(
    location: Annotated[str, typer.Argument(help="The stagingLocation of the queries: a folder, or a bucket.")],
    accept_loss: Annotated[
        list[str] | None,
        typer.Option(
            "--accept-loss",
            metavar="GENERATION/EPOCH",
            help="Give up the damaged and missing files of an epoch, as the error message names it.",
        ),
    ] = None,
    *,
    endpoint: Annotated[str | None, typer.Option(help="The stagingEndpoint of the queries.")] = None,
    region: Annotated[str | None, typer.Option(help="The stagingRegion of the queries.")] = None,
    credentials: Annotated[
        str | None, typer.Option(metavar="env:NAME|file:PATH", help="Like the stagingCredentials of the queries.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Check the staged messages of Spark queries, and repair what has one right answer. No query may run.

    The exit status is 1 if something remains that must be restored from a backup, or given up by --accept-loss.
    """
    from jmsjca.spark.staging_location import open_location, parse_location, repair  # an extra

    store = open_location(parse_location(location), endpoint=endpoint, region=region, credentials=credentials)
    found = repair(store, accept_loss or [])
    rows = [{"file": f.path, "problem": f.problem, "repaired": f.repaired or "no"} for f in found]
    print_rows(rows, as_json=json)
    if any(not finding.repaired for finding in found):
        raise typer.Exit(1)


bench_app = typer.Typer(rich_markup_mode=None)

_PATIENCE = 60.0  # seconds to wait for a message that was sent


@bench_app.command()
def bench(
    url: Annotated[str, typer.Argument(help="The URL, or env:NAME.")],
    messages: Annotated[int, typer.Option(min=1, help="The number of messages of each measurement.")] = 1000,
    size: Annotated[int, typer.Option(min=0, help="Characters of each body.")] = 100,
    json: JsonOption = False,
) -> None:
    """Measure sends and receipts through a queue of its own: each alone, and in transactions of 100 messages."""
    with ConnectionFactory(broker_url(url)).create_connection() as connection, _own_queue(connection) as queue:
        has_transactions = connection.capabilities.transacted_receive and connection.capabilities.transacted_send
        rows = [
            row
            for transacted in ([False, True] if has_transactions else [False])
            for row in _rows(connection, queue, "x" * size, messages, transacted=transacted)
        ]
    print_rows(rows, as_json=json)


@contextmanager
def _own_queue(connection: Connection) -> Generator[Destination]:
    """Provide a queue, which is removed with its messages at the end: a temporary one, or one with a unique name.

    Without an administration over this protocol, the empty queue stays on brokers without temporary ones.
    """
    with connection.create_session() as session:
        if connection.capabilities.temporary:
            queue = session.create_temporary_queue()
            yield queue
            queue.delete()
            return
    named = Queue(f"jmsjca.bench.{uuid.uuid4().hex}")
    try:
        yield named
    except BaseException:
        with suppress(JMSError):  # the first error is the one to show
            _remove(connection, named)
        raise
    _remove(connection, named)


def _remove(connection: Connection, queue: Queue) -> None:
    if connection.admin is not None:
        connection.admin.remove(queue)


def _rows(
    connection: Connection, queue: Destination, body: str, messages: int, *, transacted: bool
) -> Iterator[dict[str, object]]:
    name = "transactions of 100" if transacted else "one by one"
    with connection.create_session(transacted) as session:
        producer = session.create_producer(queue)
        yield _row(f"send, {name}", messages, _timed(session, messages, lambda: producer.send(TextMessage(body))))
        consumer = session.create_consumer(queue)

        def receive() -> None:
            """Receive one message."""
            if consumer.receive(_PATIENCE) is None:
                raise JMSError(f"A message did not arrive within {_PATIENCE:g} s.")

        yield _row(f"receive, {name}", messages, _timed(session, messages, receive))
        consumer.close()


def _timed(session: Session, messages: int, step: Callable[[], object]) -> float:
    """Return the seconds that steps take; a transacted session commits every hundred."""
    began = perf_counter()
    for number in range(1, messages + 1):
        step()
        if session.transacted and (number % 100 == 0 or number == messages):
            session.commit()
    return perf_counter() - began


def _row(what: str, messages: int, seconds: float) -> dict[str, object]:
    return {
        "measured": what,
        "messages": messages,
        "per_second": round(messages / seconds),
        "microseconds_each": round(1e6 * seconds / messages, 1),
    }


app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
app.add_typer(queue_app)
app.add_typer(relay_app)
app.add_typer(worker_app)
app.add_typer(console_app)
app.add_typer(mcp_app)
app.add_typer(bench_app)
app.add_typer(file_app, name="file")
app.add_typer(dead_letter_app, name="dlq")
app.add_typer(selector_app, name="selector")
app.add_typer(spark_app, name="spark")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"jmsjca {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Message-driven endpoints for Python and Spark."""
    del version


@app.command()
def demo(  # typer calls it by name
    input: Annotated[  # noqa: A002  # the option's name
        Path | None, typer.Option(help="Events: a JSON array, JSON lines or CSV. Without it, generated ones.")
    ] = None,
    airports: Annotated[Path | None, typer.Option(help="A CSV file of airports (iata, name, city) to join.")] = None,
    events: Annotated[int, typer.Option(help="How many events to generate.")] = 20_000,
    poison: Annotated[float, typer.Option(help="The share of message bodies to corrupt, 0 to 1.")] = 0.0,
    crash: Annotated[
        bool, typer.Option("--crash", help="Kill the Spark query in the middle and start it again.")
    ] = False,
    url: Annotated[
        str | None,
        typer.Option(
            envvar="JMSJCA_URL",
            help="The broker: embedded:///folder/file.db, amqp://host:5672 or stomp://host:61613. With a password: "
            "amqps://user:password@host, or amqp://user:password@host?allow_insecure_login=true on a network that you "
            "trust. The broker must have transactions and durable subscriptions. "
            "Without a URL, the demo uses an embedded broker in a new file.",
        ),
    ] = None,
    output: Annotated[Path, typer.Option(help="The folder below which each run creates its own folder.")] = Path(
        "jmsjca-demo"
    ),
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the account to this file.")] = None,
    seed: Annotated[int, typer.Option(help="Seed for the generated and corrupted events.")] = 2001,
) -> int:
    """Send events through a durable queue and a Spark query, and account for every event.

    The exit status is 0 only if no event was lost or duplicated.
    """
    try:
        from jmsjca.demo.events import DemoRequest
        from jmsjca.demo.run import Display, run_demo  # rich, psutil, pyspark
    except ImportError as error:
        raise ProviderNotInstalledError(f'the demo needs {error.name}: pip install "jmsjca[demo]"') from error
    request = DemoRequest(input, airports, events, poison, crash, url, output, seed, json_file)
    display = Display()
    account = run_demo(request, display)
    display.account("The account", _figures(account))
    display.say(f"Picture: {account['picture']}")
    return 0 if account["balanced"] else 1


def _figures(account: dict[str, object]) -> dict[str, object]:
    """Flatten nested figures, one for each line."""
    flat: dict[str, object] = {}
    for name, value in account.items():
        words = name.replace("_", " ")
        if isinstance(value, dict):
            nested = cast("dict[str, object]", value)
            flat |= {f"{words}: {key.replace('_', ' ')}": figure for key, figure in nested.items()}
        elif value is not None and name != "picture":
            flat[words] = value
    return flat


@app.command()
def convert(
    files: Annotated[
        list[Path], typer.Argument(help="ra.xml, sun-ra.xml, ejb-jar.xml, sun-ejb-jar.xml, weblogic-ejb-jar.xml, TOML.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The TOML file; the output without one.")
    ] = None,
    json: JsonOption = False,
) -> int:
    """Convert deployment descriptors to a configuration file, and list what has no place in it.

    Passwords, and whatever may hold one, become references to environment variables.
    """
    from jmsjca.descriptors import read, to_toml  # an extra

    deployment = read(*files)
    text = to_toml(deployment.configuration)
    if output is not None:
        try:
            output.write_text(text, "utf-8")
        except OSError as error:
            raise ConfigurationError(f"--output {output} cannot be written: {error}. Name another file.") from error
    if json:
        report = [entry._asdict() for entry in deployment.report]
        print_json({"configuration": tomllib.loads(text), "report": report})
        return 0
    if output is None:
        print_output(text, nl=False)
    for entry in deployment.report:
        typer.echo(str(entry), err=True)
    return 0
