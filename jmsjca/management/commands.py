"""The command tree, and the commands that check, measure, explain, convert and serve pages."""

import os
import re
import time
import tomllib
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Annotated, cast

import typer

from jmsjca import __version__
from jmsjca.adapter import ResourceAdapter
from jmsjca.config.activation_spec import ActivationSpec
from jmsjca.config.connection_url import ConnectionURL
from jmsjca.config.limits import Limits
from jmsjca.destinations import Destination, Queue
from jmsjca.errors import ConfigurationError, JMSError, ProviderNotInstalledError, excerpt
from jmsjca.management.insight import Insight
from jmsjca.management.message_changes import parse_property, text_message
from jmsjca.management.presentation import (
    HealthFilesOption,
    HelpGroup,
    JsonOption,
    PropertyOption,
    UrlOption,
    broker_url,
    busy,
    from_environment,
    parse_destination,
    print_json,
    print_output,
    print_rows,
)
from jmsjca.management.queue_commands import dead_letter_app, queue_app, subscription_app
from jmsjca.management.worker import load_adapter
from jmsjca.management.worker_commands import worker_app
from jmsjca.messages.message import TextMessage
from jmsjca.outbound.connection import Connection
from jmsjca.outbound.factory import ConnectionFactory
from jmsjca.outbound.session import Session
from jmsjca.providers.embedded import maintenance
from jmsjca.providers.registry import find_provider
from jmsjca.reconnection import ConnectionSettings, connect, reach_hosts
from jmsjca.redelivery.policy import RedeliveryPolicy, redelivery_ladder
from jmsjca.selectors import Selector
from jmsjca.selectors.syntax import read_integer, read_real
from jmsjca.spi import RARELY_REACHED, DeliveryLimits, TwoPhaseConnection, Xid
from jmsjca.spi import Connection as ProviderConnection

__all__ = ["Finding", "app", "diagnose", "prefetch_rows"]


class _Tree(HelpGroup):
    headings: Mapping[str, Sequence[str]] = {
        "Work": ("run", "check", "status", "top", "docs", "relay"),
        "Queues": (
            *("queues", "create", "remove", "send", "publish", "receive", "browse", "view", "edit", "copy", "move"),
            *("purge", "subscriptions", "selector", "explain"),
        ),
        "Dead letters": ("dlq",),
        "Brokers": ("doctor", "capabilities", "bench", "console", "mcp"),
        "Spark": ("spark", "demo"),
        "Files": ("file", "convert"),
    }


app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, cls=_Tree)
file_app = typer.Typer(
    rich_markup_mode=None, cls=HelpGroup, help="Check, compact and back up the file of an embedded broker."
)
selector_app = typer.Typer(rich_markup_mode=None, cls=HelpGroup, help="Check selectors.")
spark_app = typer.Typer(rich_markup_mode=None, cls=HelpGroup, help="Check and repair the files of Spark queries.")
app.add_typer(queue_app)
app.add_typer(worker_app)
app.add_typer(file_app, name="file")
app.add_typer(dead_letter_app, name="dlq")
app.add_typer(subscription_app, name="subscriptions")
app.add_typer(selector_app, name="selector")
app.add_typer(spark_app, name="spark")

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
    """Return unused space to the disk. Other processes that use the file are blocked until the end."""
    with busy("compacting"):
        freed = maintenance.compact(_existing(file))
    print_rows([{"file": file, "freed_bytes": freed}], as_json=json)


@file_app.command()
def backup(
    file: _FileArgument,
    target: Annotated[Path, typer.Argument(help="The new file.")],
    json: JsonOption = False,
) -> None:
    """Copy a consistent snapshot of the file, also while processes use it. The new file is checked."""
    with busy("copying"):
        copied = maintenance.backup(_existing(file), target.resolve())
    print_rows([{"file": file, "backup": target, "bytes": copied}], as_json=json)


def _existing(file: Path) -> Path:
    """Return the absolute path of an existing file.

    Raises:
        ConfigurationError: There is no such file.
    """
    if not file.is_file():
        raise ConfigurationError(f"There is no file {str(file)!r:.200}: name the file of an embedded broker.")
    return file.resolve()


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
    """Check the staged messages of Spark queries, and repair what has one right answer. No query may be running.

    The exit status is 1 if a fault remains: restore it from a backup, or accept the loss with --accept-loss.
    """
    from jmsjca.spark.staging_location import open_location, parse_location, repair  # an extra

    store = open_location(parse_location(location), endpoint=endpoint, region=region, credentials=credentials)
    found = repair(store, accept_loss or [])
    rows = [{"file": f.path, "problem": f.problem, "repaired": f.repaired or "no"} for f in found]
    print_rows(rows, as_json=json)
    if any(not finding.repaired for finding in found):
        raise typer.Exit(1)


_URLArgument = Annotated[str, typer.Argument(help="The URL, or env:NAME.")]
_BENCH_PATIENCE = 60.0  # seconds to wait for a message that was sent


@app.command()
def bench(
    url: _URLArgument,
    messages: Annotated[int, typer.Option(min=1, help="The number of messages of each measurement.")] = 1000,
    size: Annotated[int, typer.Option(min=0, help="Characters of each body.")] = 100,
    json: JsonOption = False,
) -> None:
    """Measure sends and receipts through a separate queue: single messages, and transactions of 100 messages."""
    with ConnectionFactory(from_environment(url)).create_connection() as connection, _own_queue(connection) as queue:
        has_transactions = connection.capabilities.transacted_receive and connection.capabilities.transacted_send
        rows = [
            row
            for transacted in ([False, True] if has_transactions else [False])
            for row in _rows(connection, queue, "x" * size, messages, transacted=transacted)
        ]
    print_rows(rows, as_json=json)


@contextmanager
def _own_queue(connection: Connection) -> Generator[Destination]:
    """Provide a temporary queue, or a queue with a unique name, and remove it with its messages at the end.

    The empty queue remains on a broker that has neither temporary queues nor administration over this protocol.
    """
    with connection.create_session() as session:
        if connection.capabilities.temporary:
            queue = session.create_temporary_queue()
            yield queue
            queue.delete()
            return
    named, failed = Queue(f"jmsjca.bench.{uuid.uuid4().hex}"), True
    try:
        yield named
        failed = False
    finally:
        with suppress(JMSError) if failed else nullcontext():  # do not hide the first error
            if connection.admin is not None:
                connection.admin.remove(named)


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
            if consumer.receive(_BENCH_PATIENCE) is None:
                raise JMSError(f"A message did not arrive within {_BENCH_PATIENCE:g} s.")

        yield _row(f"receive, {name}", messages, _timed(session, messages, receive))
        consumer.close()


def _timed(session: Session, messages: int, step: Callable[[], object]) -> float:
    """Return the duration of steps in seconds. A transacted session commits every hundred steps."""
    began = time.perf_counter()
    for number in range(1, messages + 1):
        step()
        if session.transacted and (number % 100 == 0 or number == messages):
            session.commit()
    return time.perf_counter() - began


def _row(what: str, messages: int, seconds: float) -> dict[str, object]:
    return {
        "measured": what,
        "messages": messages,
        "per_second": round(messages / seconds),
        "microseconds_each": round(1e6 * seconds / messages, 1),
    }


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"jmsjca {__version__}")
        raise typer.Exit


@contextmanager
def _environment(name: str, value: str) -> Generator[None]:
    before, os.environ[name] = os.environ.get(name), value
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


@app.callback()
def main(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    url: Annotated[
        str | None, typer.Option(help="The connection URL of all commands that have this option; as JMSJCA_URL.")
    ] = None,
) -> None:
    """Message-driven endpoints for Python and Spark."""
    del version
    if url is not None:
        context.with_resource(_environment("JMSJCA_URL", url))  # commands and their child processes read it there


@app.command()
def demo(
    source: Annotated[
        Path | None,
        typer.Option("--input", help="Events: a JSON array, JSON lines or CSV. Without it, generated ones."),
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
    request = DemoRequest(source, airports, events, poison, crash, url, output, seed, json_file)
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
    """Convert deployment descriptors to a configuration file, and list the properties that it cannot hold.

    Passwords, and other values that may contain one, become references to environment variables.
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


@app.command()
def console(
    url: UrlOption,
    port: Annotated[int, typer.Option(help="The port; 0 for a free one.", min=0, max=65535)] = 8321,
    write: Annotated[
        bool, typer.Option("--write", help="Permit to publish, replay, move, edit and delete messages.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Serve web pages about a broker, only for browsers on this machine, until SIGINT.

    The printed address contains the access token. Set the token with the environment variable JMSJCA_CONSOLE_TOKEN.
    """
    from jmsjca.management.console import Console  # an extra

    application = Console(broker_url(url), token=os.environ.get("JMSJCA_CONSOLE_TOKEN") or None, writable=write)
    try:
        from jmsjca.management.console.server import HOST, console_server, listen
    except ImportError as error:
        raise ProviderNotInstalledError('The console needs uvicorn: pip install "jmsjca[console]"') from error
    with suppress(KeyboardInterrupt), listen(port) as listener:
        address = f"http://{HOST}:{listener.getsockname()[1]}/"
        if json:
            print_json({"address": address, "token": application.token, "writable": write}, lines=True)
        else:
            typer.echo(f"{address}?token={application.token}")
        console_server(application).run(sockets=[listener])


@app.command()
def mcp(url: UrlOption, files: HealthFilesOption = None) -> None:
    """Serve ten read-only tools for a broker over MCP, on standard input and output, until the input ends."""
    try:
        from jmsjca.management.mcp_server import mcp_server, serve_standard_streams  # an extra
    except ImportError as error:
        raise ProviderNotInstalledError(f'the MCP server needs {error.name}: pip install "jmsjca[mcp]"') from error
    serve_standard_streams(mcp_server(Insight(broker_url(url), must_exist=True), files or []))


@app.command()
def capabilities(url: _URLArgument, json: JsonOption = False) -> None:
    """Show the capabilities of a broker."""
    found = asdict(Insight(from_environment(url)).capabilities())
    print_rows(({"capability": name, "value": value} for name, value in found.items()), as_json=json)


@app.command()
def doctor(
    url: _URLArgument,
    queue: Annotated[
        list[str] | None, typer.Option(help="A queue whose delivery limit is checked; all that are listed without.")
    ] = None,
    json: JsonOption = False,
) -> int:
    """Check a broker: connect, log in, list what it lacks, measure a round trip. The exit status is 1 on failure."""
    findings = list(diagnose(from_environment(url), [Queue(name) for name in queue or ()]))
    print_rows(map(asdict, findings), as_json=json)
    return int(any(each.result == "failed" for each in findings))


@app.command()
def explain(
    handling: Annotated[
        str | None, typer.Argument(help="A redelivery handling, 3:25; 5:move(queue:dlq.$) for example.")
    ] = None,
    source: Annotated[str, typer.Option(help="The listener's destination: NAME, queue:NAME or topic:NAME.")] = "orders",
    adapter: Annotated[
        str | None, typer.Option(help="module:adapter: show the memory that its prefetched messages need at most.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Draw the ladder of a redelivery handling, or show the memory of an adapter's listeners."""
    if adapter is not None:
        print_rows(prefetch_rows(load_adapter(adapter)), as_json=json)
        return
    if handling is None:
        raise typer.BadParameter("Name a redelivery handling, or --adapter.")
    listened = parse_destination(source)
    policy = RedeliveryPolicy.parse(handling, listened.name, listened.kind)
    print_rows(redelivery_ladder(policy), as_json=json)


@selector_app.command("test")
def check_selector(
    selector: Annotated[str, typer.Argument(help="The selector.")],
    properties: PropertyOption = None,
    json: JsonOption = False,
) -> int:
    """Check a selector against the properties of a message. The exit status is 1 if it does not match."""
    message = text_message("", dict(map(_typed_pair, properties or [])))
    matches = Selector.parse(selector).matches(message)
    print_rows([{"selector": selector, "matches": matches}], as_json=json)
    return int(not matches)


# As in the selector grammar.
_NUMBER = re.compile(
    r"[+-]?(?:(?P<integer>(?:0[xX][0-9a-fA-F]+|[0-9]+)[lL]?)"
    r"|(?P<real>(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?|[0-9]+(?:[eE][+-]?[0-9]+[fFdD]?|[fFdD])))"
)


def _typed_pair(text: str) -> tuple[str, object]:
    """Return a property. A value that is a selector literal (number, true, false) gets that type."""
    name, value = parse_property(text)
    if value.lower() in {"true", "false"}:
        return name, value.lower() == "true"
    found = _NUMBER.fullmatch(value)
    if found is None:
        return name, value
    try:
        number = read_integer(found["integer"]) if found["integer"] else read_real(found["real"])
    except ValueError:  # too large, or 08, which is not octal
        return name, value
    return name, -number if value.startswith("-") else number


_PER_HANDLER = 2  # messages per handler that mode cc prefetches


def prefetch_rows(adapter: ResourceAdapter) -> Iterator[dict[str, object]]:
    """Yield one row for each listener of an adapter: its consumers, and the messages and bytes that they prefetch.

    ``usual_bytes`` is the bound for messages of similar sizes: `Limits.prefetch_bytes` and one message per consumer.
    ``worst_bytes`` is the bound if all messages suddenly are as large as `Limits.message_bytes` permits.
    """
    limits = adapter.limits
    for activation in adapter.activations:
        consumers, prefetched = _bounds(activation.spec, limits)
        each = min(limits.prefetch_bytes + limits.message_bytes, prefetched * limits.message_bytes)
        yield {
            "listener": activation.name,
            "mode": activation.spec.concurrency_mode,
            "consumers": consumers,
            "prefetched": consumers * prefetched,
            "usual_bytes": consumers * each,
            "worst_bytes": consumers * prefetched * limits.message_bytes,
        }


def _bounds(spec: ActivationSpec, limits: Limits) -> tuple[int, int]:
    """Return the number of consumers, and the maximum number of messages that each of them prefetches."""
    size = spec.batch_size or 1
    if spec.concurrency_mode == "serial":
        return 1, limits.chunk
    if spec.concurrency_mode == "cc":
        return 1, max(size, limits.prefetch_messages, _PER_HANDLER * spec.endpoint_pool_max_size)
    return spec.endpoint_pool_max_size if spec.destination_type == "queue" else 1, max(size, limits.chunk)


_ROUND_TRIPS = 5
_PATIENCE = 10.0
_CLOCK_SECONDS = 1.0  # a smaller difference is not a fault
_NEEDED = {
    "atomic": "receipts and sends are not one transaction: a listener that sends may send twice. {elsewhere}",
    "selectors": "consumers cannot filter. {elsewhere}",
    "browse": "queues cannot be browsed, so that jmsjca browse and dlq do not work. {elsewhere}",
    "delivery_count": "deliveries are counted by this process only: a new process counts from 1 again",
    "admin": "depths are unknown. {management}",
}
_ELSEWHERE = "The page 'What each broker can do' has the brokers and protocols with it"
_MANAGEMENT = "On ActiveMQ Classic and RabbitMQ add the option management_url; on other brokers use AMQP"
_CLOCKS = "On ActiveMQ Classic add the option management_url; Artemis and Broker-J report it over AMQP"
_SHOWN = 10  # queues
_LOW_LIMIT = (
    "messages that are returned more often are dropped, also prefetched ones that no handler saw. Declare the queues"
    f" with x-delivery-limit={RARELY_REACHED} or more, and with a dead-letter exchange"
)
_SYNCHRONISE = "expirations and delivery delays are wrong by as much: synchronise both clocks with NTP"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        check: Name of the check.
        result: "ok", "missing" (a capability, or a value that the broker does not report) or "failed".
        detail: A value; or what is missing or wrong, and the remedy.
    """

    check: str
    result: str
    detail: str


def diagnose(url: str, queues: Sequence[Queue] = ()) -> Iterator[Finding]:
    """Check a broker step by step. A failure ends the checks, except a failure of the clock check.

    Args:
        url: The connection URL.
        queues: Queues to check for delivery limits; empty checks all queues that the broker lists.
    """
    try:
        parsed = ConnectionURL.parse(url)
        yield Finding("URL", "ok", str(parsed))
        if parsed.others:
            yield from _hosts(url)
        yield from _parts(parsed)
        began = time.perf_counter()
        with ConnectionFactory(url).create_connection() as connection:
            yield Finding("connection and login", "ok", f"{1000 * (time.perf_counter() - began):.1f} ms")
            yield _broker(connection)
            yield from _capabilities(connection)
            yield _clock(connection)
            yield from _delivery_limits(connection, queues)
            yield from _round_trips(connection)
        if hasattr(find_provider(parsed.protocol), "connect_two_phase"):  # others need no second connection
            yield from _prepared_units(url)
    except JMSError as error:
        yield Finding("failure", "failed", f"{type(error).__name__}: {error}")


def _parts(url: ConnectionURL) -> Iterator[Finding]:
    """Find what a provider needs on this machine: Java, and the jars of a client. Most need nothing."""
    inspect = getattr(find_provider(url.protocol), "inspect", None)
    for name, detail in inspect(url.for_provider()) if inspect else ():
        yield Finding(name, "ok", detail)


def _hosts(url: str) -> Iterator[Finding]:
    """Find which hosts of a fail-over list accept clients. A passive node of a pair does not."""
    uses = "; connections begin with it"
    for address, error in reach_hosts(ConnectionSettings(url)):
        if error is None:
            yield Finding(f"host {address}", "ok", f"accepts clients{uses}")
            uses = ""
        else:
            yield Finding(f"host {address}", "missing", f"passive, or not running: {error}")


def _broker(connection: Connection) -> Finding:
    announced = connection.metadata.broker
    if not announced:
        return Finding("broker", "missing", "it announces no product and version: only what is certain is used")
    return Finding("broker", "ok", excerpt(announced, 100))


def _capabilities(connection: Connection) -> Iterator[Finding]:
    for name, consequence in _NEEDED.items():
        has = getattr(connection.capabilities, name)
        remedy = consequence.format(elsewhere=_ELSEWHERE, management=_MANAGEMENT)
        yield Finding(f"capability {name}", "ok" if has else "missing", "" if has else remedy)


def _clock(connection: Connection) -> Finding:
    """Compare the broker's clock with the clock of this machine. A user without permission gets no time."""
    admin = connection.admin
    if admin is None:
        return Finding("clock", "missing", f"the broker does not report its time over this protocol. {_CLOCKS}")
    try:
        admin.clock()  # warm-up: the first request also opens what it needs
        began = time.time()
        found = admin.clock()
        ended = time.time()
    except JMSError as error:
        return Finding("clock", "missing", f"the broker does not report its time: {error}")
    if found is None:
        return Finding("clock", "missing", "the broker does not report its time over this protocol")
    return clock_finding(began, found, ended)


def _delivery_limits(connection: Connection, queues: Sequence[Queue]) -> Iterator[Finding]:
    """Find the queues that drop a message after a few returns, also if it was only prefetched."""
    admin, check = connection.admin, "delivery limits"
    limiting: object = admin
    if admin is None or not isinstance(limiting, DeliveryLimits):
        return
    if not queues and not connection.capabilities.lists_destinations:
        yield Finding(check, "missing", f"name the queues to check with --queue. {_MANAGEMENT}")
        return
    checked = queues or [each for each in admin.destinations() if isinstance(each, Queue)]
    limits = {each.name: limiting.delivery_limit(each) for each in checked}
    low = [f"{name} ({limit})" for name, limit in limits.items() if limit is not None and limit < RARELY_REACHED]
    if low:
        more = f" and {len(low) - _SHOWN} more" if len(low) > _SHOWN else ""
        yield Finding(check, "missing", f"{', '.join(low[:_SHOWN])}{more}: {_LOW_LIMIT}")
    else:
        yield Finding(check, "ok", f"{len(limits)} queues checked")


class _Look:
    """Takes the place of a database that decides: it only lists the prepared units of the broker."""

    prepared = 0

    def __init__(self) -> None:
        self.found: Sequence[Xid] | None = None

    def identity(self) -> bytes:
        """Return the identity of no database."""
        return bytes(16)

    def watch(self, connection: ProviderConnection) -> None:
        """List the prepared units, if the connection can have some."""
        if isinstance(connection, TwoPhaseConnection) and connection.qualifier is not None:
            self.found = connection.prepared()


def _prepared_units(url: str) -> Iterator[Finding]:
    """Count the prepared units of this library at the broker, which hold their messages until they are ended."""
    look = _Look()
    connect(ConnectionSettings(url, last_resource=look)).close()
    if look.found is not None:
        names = "".join(f"; {xid}" for xid in look.found[:_SHOWN])
        yield Finding("prepared units", "ok", f"{len(look.found)}{names}")


def clock_finding(began: float, found: float, ended: float) -> Finding:
    """Return the finding for a time that a broker reported.

    Args:
        began: Local time at the request, in seconds.
        found: The broker's time; possibly truncated to whole seconds.
        ended: Local time at the response.
    """
    rest = 0.5 if found.is_integer() else 0.0
    difference, uncertain = found + rest - (began + ended) / 2, (ended - began) / 2 + rest
    measured = f"{difference:+.3f} s from that of this machine, ± {uncertain:.3f} s"
    if abs(difference) <= _CLOCK_SECONDS + uncertain:
        return Finding("clock", "ok", measured)
    return Finding("clock", "failed", f"{measured}: {_SYNCHRONISE}")


def _round_trips(connection: Connection) -> Iterator[Finding]:
    """Send to a temporary queue and receive from it. Without temporary queues nothing is sent."""
    if not connection.capabilities.temporary:
        yield Finding("round trip", "missing", "no temporary queues; try jmsjca send and receive with a queue of yours")
        return
    with connection.create_session() as session:
        queue = session.create_temporary_queue()
        producer, consumer = session.create_producer(queue), session.create_consumer(queue)
        seconds: list[float] = []
        for _ in range(_ROUND_TRIPS):
            began = time.perf_counter()
            producer.send(TextMessage("jmsjca doctor"))
            if consumer.receive(_PATIENCE) is None:
                yield Finding("round trip", "failed", f"a message did not arrive within {_PATIENCE:g} s")
                return
            seconds.append(time.perf_counter() - began)
        yield Finding("round trip", "ok", f"{1000 * median(seconds):.2f} ms, the median of {_ROUND_TRIPS}")
