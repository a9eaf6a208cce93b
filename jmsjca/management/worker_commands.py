"""The commands for workers: ``jmsjca run``, ``check``, ``status``, ``top``, ``docs`` and ``relay``."""

import itertools
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from json import dumps
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from jmsjca import __version__
from jmsjca.adapter import ResourceAdapter
from jmsjca.config.connection_url import ConnectionURL
from jmsjca.destinations import destination
from jmsjca.errors import (
    ConfigurationError,
    InvalidArgumentError,
    JMSError,
    ResourceAllocationError,
)
from jmsjca.inbound import Activation, DistributedActivation
from jmsjca.log_records import one_line
from jmsjca.management.asyncapi import as_yaml, document
from jmsjca.management.health import Report, read_health_file
from jmsjca.management.insight import Insight
from jmsjca.management.presentation import (
    HealthFilesOption,
    JsonOption,
    UrlOption,
    WholeOption,
    broker_url,
    from_environment,
    is_terminal,
    print_json,
    print_output,
    print_rows,
)
from jmsjca.management.views import rate_row
from jmsjca.management.worker import (
    Supervisor,
    WorkerSettings,
    account_of,
    load_adapter,
    load_adapters,
    load_connectors,
    load_work,
    serve_work,
    write_log_records,
)
from jmsjca.outbound.factory import ConnectionFactory
from jmsjca.providers.registry import find_provider
from jmsjca.selectors import Selector

__all__ = ["activity_rows", "check_rows", "worker_app"]

worker_app = typer.Typer(rich_markup_mode=None)

_TargetArgument = Annotated[
    str, typer.Argument(help="module:adapter, module:function that returns it, FILE.toml or FILE.toml:NAME.")
]


class _LogLevel(Enum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@worker_app.command()
def run(
    target: _TargetArgument,
    processes: Annotated[int, typer.Option(min=1, help="Processes; those that end are restarted.")] = 1,
    timeout: Annotated[float | None, typer.Option(help="Seconds that active handlers have after a signal.")] = None,
    interval: Annotated[float, typer.Option(help="Seconds that a handler may take before it counts as stuck.")] = 30.0,
    health_port: Annotated[int | None, typer.Option(help="Serve /ready, /live and /metrics on this port.")] = None,
    health_host: Annotated[str, typer.Option(help="The address of the health port.")] = "127.0.0.1",
    health_file: Annotated[Path | None, typer.Option(help="Write the health to this file.")] = None,
    log_level: Annotated[
        _LogLevel | None, typer.Option(help="Write log records from this level on; without it, from warning on.")
    ] = None,
    reload: Annotated[bool, typer.Option("--reload", help="Restart when a source or FILE.toml changes.")] = False,
    account_file: Annotated[Path | None, typer.Option(hidden=True)] = None,
    json: JsonOption = False,
) -> int:
    """Serve an adapter, and the connectors of FILE.toml, until SIGINT or SIGTERM, and account for the messages.

    The exit status is 1 if some are lost.
    """
    level = None if log_level is None else log_level.value
    settings = WorkerSettings(
        target, processes, timeout, interval, health_port, health_host, health_file, level, reload=reload
    )
    adapter, connectors = load_work(target)  # in a supervisor: an error is one line here, not one line per process
    if connectors and processes > 1:
        raise ConfigurationError(
            f"{target} has connectors, and the in-progress queue of a connector belongs to one process: leave out "
            "--processes, or name an adapter as FILE.toml:ADAPTER."
        )
    write_log_records(level)
    supervised = account_file is not None

    def announce() -> None:
        """Write what the worker serves, unless its supervisor has already written it."""
        for line in () if supervised else banner(adapter, connectors, settings):
            _tell(line)

    if processes == 1 and not reload:
        accounts = [account_of(serve_work(adapter, connectors, settings, announce, supervised=supervised))]
    else:
        accounts = Supervisor(settings, lambda event, fields: _tell(f"{event} {_shown(fields)}"), announce).run()
    if account_file is not None:
        account_file.write_text(dumps(accounts[0]))
    elif json:
        for account in accounts:
            print_json(account, lines=True)
    else:
        print_rows(accounts, as_json=False)
    return int(not all(account.get("ended") for account in accounts))


@worker_app.command()
def check(
    target: Annotated[str, typer.Argument(help="FILE.toml, FILE.toml:NAME, or module:adapter.")],
    json: JsonOption = False,
) -> int:
    """Check the adapters and connectors of a file, or one of them: URLs, selectors, handlers. Connect to nothing.

    The exit status is 2 if there is a problem.
    """
    rows = [row for adapter in load_adapters(target) for row in check_rows(adapter)]
    rows += [{"listener": f"connector {name}", "handler": None, "problem": None} for name in load_connectors(target)]
    print_rows(rows, as_json=json)
    return 2 if any(row["problem"] for row in rows) else 0


def banner(adapter: ResourceAdapter | None, connectors: Iterable[str], settings: WorkerSettings) -> Iterator[str]:
    """Yield the lines that a worker writes at its start: adapter, broker, and the listeners with their modes."""
    try:
        broker = str(ConnectionURL.parse("" if adapter is None else adapter.connection_url or ""))
    except JMSError:  # each listener names its own URL, or a naming context does
        broker = f"the brokers of its {'connectors' if adapter is None else 'listeners'}"
    count = "" if settings.processes == 1 else f" in {settings.processes} processes"
    yield f"{__version__} serves {settings.target} on {broker}{count}; Ctrl+C stops it"
    yield from (f"connector {name}" for name in connectors)
    for each in () if adapter is None else adapter.activations:
        spec = each.spec
        size = "" if spec.concurrency_mode == "serial" else f" with up to {spec.endpoint_pool_max_size} handlers"
        source = destination(spec.destination, spec.destination_type)
        yield f"listener {each.handler_name} of {source}, {spec.concurrency_mode}{size}"


def _tell(text: str) -> None:
    """Write a line to standard error."""
    with suppress(OSError):  # a closed pipe or a full disk must not stop the processes
        typer.echo(f"jmsjca: {one_line(text)}", err=True)


def _shown(fields: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in fields.items() if value is not None)


@worker_app.command()
def top(
    files: HealthFilesOption = None,
    url: Annotated[
        str | None, typer.Option("--url", help="The connection URL of a broker, or env:NAME: shows its queues instead.")
    ] = None,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two tables.")] = 2.0,
    count: Annotated[int | None, typer.Option(min=1, help="The number of tables; without it, until Ctrl+C.")] = None,
    whole: WholeOption = False,
    json: JsonOption = False,
) -> None:
    """Show listeners of workers, or queues of a broker, with their messages per second. The view is updated."""
    if bool(files) is bool(url):
        raise InvalidArgumentError("Name health files of workers (--file), or a broker (--url).")
    for number, rows in enumerate(_queue_tables(url, interval) if url else _listener_tables(files or [], interval), 1):
        if json:
            print_json(rows, lines=True)
        else:
            if is_terminal():
                typer.echo("\x1b[2J\x1b[H", nl=False)  # a terminal shows one table that is updated
            print_rows(rows, as_json=False, shorten=None if whole else "name" if url else "listener")
        if number == count:
            return


def _listener_tables(files: Sequence[Path], interval: float) -> Iterator[list[dict[str, object]]]:
    before: dict[tuple[object, str], tuple[float, float]] = {}
    for pause in itertools.chain([0.0], itertools.repeat(interval)):
        time.sleep(pause)
        yield list(activity_rows([read_health_file(path) for path in files], before))


def _queue_tables(url: str, interval: float) -> Iterator[list[dict[str, object]]]:
    """Yield the queues of a broker, sorted by messages per second, highest first."""
    insight = Insight(broker_url(url))
    while True:
        queues = [each for each in insight.destination_rates(interval) if each.depth is not None]
        queues.sort(key=lambda each: -(each.added_per_second or 0) - (each.settled_per_second or 0))
        yield list(map(rate_row, queues))


def activity_rows(
    reports: Sequence[Report], before: dict[tuple[object, str], tuple[float, float]]
) -> Iterator[dict[str, object]]:
    """Yield one row for each listener of each process.

    Args:
        reports: The health of the workers, with statistics.
        before: Messages and time of the previous row, by process and listener; updated for the next call.
    """
    for report in itertools.chain.from_iterable(map(_processes_of, reports)):
        if "written" not in report:  # a process that has ended, or has not started yet
            continue
        stats = cast("dict[str, dict[str, float]]", report.get("stats") or {})
        written = cast("float", report["written"])
        for each in _activations_of(report):
            figures = stats.get(each["name"], {})
            messages, key = figures.get("n_delivered_messages", 0), (report.get("pid"), each["name"])
            earlier, then = before.get(key, (messages, written))
            before[key] = messages, written
            rate = (messages - earlier) / (written - then) if written > then else None
            yield {
                "pid": report.get("pid"),
                "listener": each["name"],
                "status": each["status"],
                "active": figures.get("n_active_endpoints"),
                "limit": figures.get("n_configured_endpoints"),
                "messages": messages,
                "per_second": None if rate is None else round(rate, 1),
                "redeliveries": figures.get("n_redeliveries"),
            }


@worker_app.command()
def status(
    files: Annotated[
        list[Path], typer.Option("--file", "-f", help="A health file that a worker writes; may be repeated.")
    ],
    live: Annotated[bool, typer.Option("--live", help="Check liveness instead of readiness.")] = False,
    whole: WholeOption = False,
    json: JsonOption = False,
) -> int:
    """Show the health of workers. The exit status is 1 if one is not ready (or, with --live, not alive)."""
    reports = [read_health_file(path) for path in files]
    if json:
        print_json(reports)
    else:
        print_rows(_rows(reports), as_json=False, shorten=None if whole else "name")
    return int(not all(report["alive" if live else "ready"] for report in reports))


@worker_app.command()
def docs(
    adapter: Annotated[str, typer.Argument(help="The adapter, as module:name, or a configuration file (.toml).")],
    title: Annotated[str, typer.Option(help="The title of the application.")] = "jmsjca",
    version: Annotated[str, typer.Option(help="The version of the application.")] = "1.0.0",
    yaml: Annotated[bool, typer.Option("--yaml", help="Write YAML instead of JSON.")] = False,
) -> int:
    """Write the AsyncAPI 3 document of an adapter's listeners and publishers. The adapter is not started."""
    described = document(load_adapter(adapter), title, version)
    if yaml:
        print_output(as_yaml(described), nl=False)
    else:
        print_json(described)
    return 0


def _rows(reports: Sequence[Report]) -> Iterator[dict[str, object]]:
    """Yield one row per activation, or one row for a worker without activations or with a stale file."""
    for report in reports:
        activations = [each for process in _processes_of(report) for each in _activations_of(process)]
        for each in activations:
            yield {name: each[name] for name in ("pid", "name", "status", "since", "reason")}
        if not activations or report["status"] not in {each["status"] for each in activations}:
            yield {
                "pid": report.get("pid"),
                "name": "the worker",
                "status": report["status"],
                "since": report.get("since"),
                "reason": report.get("reason"),
            }


def _processes_of(report: Report) -> Sequence[Report]:
    """Return the health of each process of a worker. Without a supervisor that is the worker itself."""
    return cast("Sequence[Report] | None", report.get("processes")) or [report]


def _activations_of(report: Report) -> Iterator[dict[str, Any]]:
    """Yield the health of the activations of a process, with the process id."""
    for each in cast("list[dict[str, Any]]", report.get("activations") or []):
        yield {"pid": report.get("pid"), **each}


def check_rows(adapter: ResourceAdapter) -> Iterator[dict[str, str | None]]:
    """Yield a row for each listener: its name, its handler, and its first problem.

    Args:
        adapter: The adapter. The fields of its activation specs are valid already.
    """
    for each in adapter.activations:
        yield {"listener": each.name, "handler": each.handler_name, "problem": _problem(each)}


def _problem(activation: Activation) -> str | None:
    sides = [activation, activation.topic_side] if isinstance(activation, DistributedActivation) else [activation]
    try:
        for side in sides:
            url = ConnectionURL.parse(side.connection_factory().login.url).for_provider()
            check_url = getattr(find_provider(url.protocol), "check_url", None)  # third-party providers may not have it
            if check_url is not None:
                check_url(url)
            if side.spec.selector:
                Selector.parse(side.spec.selector)
    except JMSError as error:
        return str(error)
    return None


_DatabaseOption = Annotated[
    str,
    typer.Option(
        "--database",
        envvar="JMSJCA_DATABASE",
        help="The URL of the database as SQLAlchemy reads it; env:NAME reads it from an environment variable.",
    ),
]


@worker_app.command()
def relay(
    url: UrlOption,
    database: _DatabaseOption,
    table: Annotated[str, typer.Option(help="The table of the outbox.")] = "jmsjca_outbox",
    batch_size: Annotated[int, typer.Option(help="Messages of one unit at most.")] = 100,
    poll_interval: Annotated[float, typer.Option(help="Seconds between two looks at an empty table.")] = 0.5,
    once: Annotated[bool, typer.Option("--once", help="Send what is waiting, and end.")] = False,
    json: JsonOption = False,
) -> int:
    """Send the messages of an outbox until SIGINT or SIGTERM. Several relays may share a table.

    With --once, the exit status is 1 if messages remain that the broker has refused, or that other relays have leased.
    """
    from jmsjca.transactions import Outbox, Relay  # raises an error that names the extra if it is missing

    engine = _engine(from_environment(database, "--database"))
    from sqlalchemy import MetaData
    from sqlalchemy.exc import SQLAlchemyError

    outbox = Outbox(MetaData(), name=table, engine=engine)
    sender = Relay(outbox, ConnectionFactory(broker_url(url)), batch_size=batch_size, poll_interval=poll_interval)
    try:
        before = sender.get_stats().depth
        if once:
            sender.drain()
        else:
            _serve(sender)
        stats = sender.get_stats()
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", error)).partition("\n")[0]
        raise ResourceAllocationError(f"The table {table!r} of the database cannot be used: {reason}") from None
    finally:
        sender.close()
        engine.dispose()
    row = {"waiting_before": before, "waiting": stats.depth, "refused": stats.failing, "held": stats.held}
    print_rows([{**row, "oldest": stats.oldest}], as_json=json)
    if stats.held:
        raise ResourceAllocationError(
            f"{stats.held} messages of {table!r} were not sent: other relays have leased their parts of the table. A "
            "relay that runs sends them; the leases of one that died are over after 30 s by default: try again then."
        )
    return int(once and stats.failing > 0)


def _serve(sender: Any) -> None:
    def stop(number: int, frame: object) -> None:
        """Stop the relay after the current batch."""
        del number, frame
        sender.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    sender.run()


def _engine(database: str) -> Any:
    from sqlalchemy import create_engine  # an extra
    from sqlalchemy.exc import SQLAlchemyError

    try:
        return create_engine(database)
    except (SQLAlchemyError, ImportError) as error:  # the texts of these errors may contain the URL
        raise ConfigurationError(
            f"--database is not the URL of a database with an installed driver ({type(error).__name__})."
        ) from None
