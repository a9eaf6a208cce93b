"""The commands for workers: ``jmsjca run``, ``check``, ``top``, ``status`` and ``docs``."""

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from json import dumps
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from jmsjca.adapter import ResourceAdapter
from jmsjca.config.connection_url import ConnectionURL
from jmsjca.errors import InvalidArgumentError, JMSError
from jmsjca.inbound import Activation, DistributedActivation
from jmsjca.management.asyncapi import as_yaml, document
from jmsjca.management.health import Report, read_health_file
from jmsjca.management.insight import Insight, rate_row
from jmsjca.management.presentation import JsonOption, broker_url, is_terminal, print_json, print_output, print_rows
from jmsjca.management.worker import Supervisor, WorkerSettings, account_of, load_adapter, load_adapters, serve_adapter
from jmsjca.providers.registry import find_provider
from jmsjca.selectors import Selector

__all__ = ["activity_rows", "check_rows", "worker_app"]

worker_app = typer.Typer(rich_markup_mode=None)

_TargetArgument = Annotated[
    str, typer.Argument(help="module:adapter, module:function that returns it, FILE.toml or FILE.toml:ADAPTER.")
]


@worker_app.command()
def run(  # typer calls it by name
    target: _TargetArgument,
    processes: Annotated[int, typer.Option(min=1, help="Processes; those that end are restarted.")] = 1,
    timeout: Annotated[float | None, typer.Option(help="Seconds that active handlers have after a signal.")] = None,
    interval: Annotated[float, typer.Option(help="Seconds that a handler may take before it counts as stuck.")] = 30.0,
    health_port: Annotated[int | None, typer.Option(help="Serve /ready and /live on this port.")] = None,
    health_host: Annotated[str, typer.Option(help="The address of the health port.")] = "127.0.0.1",
    health_file: Annotated[Path | None, typer.Option(help="Write the health to this file.")] = None,
    reload: Annotated[bool, typer.Option("--reload", help="Restart when a source or FILE.toml changes.")] = False,
    account_file: Annotated[Path | None, typer.Option(hidden=True)] = None,
    json: JsonOption = False,
) -> int:
    """Serve an adapter until SIGINT or SIGTERM, and account for its messages. The exit status is 1 if some are lost."""
    settings = WorkerSettings(
        target, processes, timeout, interval, health_port, health_host, health_file, reload=reload
    )
    if processes == 1 and not reload:
        accounts = [account_of(serve_adapter(settings, supervised=account_file is not None))]
    else:
        load_adapter(target)  # a mistake is one line here, instead of one for each process
        accounts = Supervisor(settings, _tell).run()
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
    target: Annotated[str, typer.Argument(help="A configuration file, one of its adapters, or module:adapter.")],
    json: JsonOption = False,
) -> int:
    """Check the adapters of a file, or one: listeners, URLs, options, selectors, handlers. Nothing is connected.

    The exit status is 2 if there is a problem.
    """
    rows = [row for adapter in load_adapters(target) for row in check_rows(adapter)]
    print_rows(rows, as_json=json)
    return 2 if any(row["problem"] for row in rows) else 0


def _tell(event: str, fields: Mapping[str, object]) -> None:
    """Write an event of the supervisor to the error output, as one line."""
    shown = " ".join(f"{name}={value}" for name, value in fields.items() if value is not None)
    with suppress(OSError):  # a reader that is gone, or a full disk, does not stop the processes
        typer.echo(f"jmsjca: {event} {shown}", err=True)


@worker_app.command()
def top(
    files: Annotated[
        list[Path] | None, typer.Option("--file", "-f", help="A health file that a worker writes; may be repeated.")
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", help="The connection URL of a broker, or env:NAME: shows its queues instead.")
    ] = None,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two tables.")] = 2.0,
    count: Annotated[int | None, typer.Option(min=1, help="The number of tables; without it, until Ctrl+C.")] = None,
    json: JsonOption = False,
) -> None:
    """Show listeners of workers, or queues of a broker, again and again, with their messages per second."""
    if bool(files) is bool(url):
        raise InvalidArgumentError("Name health files of workers (--file), or a broker (--url).")
    for number, rows in enumerate(_queue_tables(url, interval) if url else _listener_tables(files or [], interval), 1):
        if json:
            print_json(rows, lines=True)
        else:
            if is_terminal():
                typer.echo("\x1b[2J\x1b[H", nl=False)  # a terminal shows one table, which changes
            print_rows(rows, as_json=False)
        if number == count:
            return


def _listener_tables(files: Sequence[Path], interval: float) -> Iterator[list[dict[str, object]]]:
    before: dict[tuple[object, str], tuple[float, float]] = {}
    for pause in itertools.chain([0.0], itertools.repeat(interval)):
        time.sleep(pause)
        yield list(activity_rows([read_health_file(path) for path in files], before))


def _queue_tables(url: str, interval: float) -> Iterator[list[dict[str, object]]]:
    """Yield the queues of a broker, those with the most messages per second first."""
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
        reports: The health of the workers, with their statistics.
        before: The messages and the time of the row before, by process and listener; changed for the next call.
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
    json: JsonOption = False,
) -> int:
    """Show the health of workers. The exit status is 1 if one is not ready (or, with --live, not alive)."""
    reports = [read_health_file(path) for path in files]
    if json:
        print_json(reports)
    else:
        print_rows(_rows(reports), as_json=False)
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
    """Yield one row for each activation; one for a worker without activations, or with a stale file."""
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
    """Return the health of each process of a worker; it is that of the worker itself without a supervisor."""
    return cast("Sequence[Report] | None", report.get("processes")) or [report]


def _activations_of(report: Report) -> Iterator[dict[str, Any]]:
    """Yield the health of the activations of a process, with its id."""
    for each in cast("list[dict[str, Any]]", report.get("activations") or []):
        yield {"pid": report.get("pid"), **each}


def check_rows(adapter: ResourceAdapter) -> Iterator[dict[str, str | None]]:
    """Yield a row for each listener: its name, its handler, and the first problem with it.

    Args:
        adapter: The adapter; the fields of its activation specs are valid, or it would not exist.
    """
    for each in adapter.activations:
        yield {"listener": each.name, "handler": each.handler_name, "problem": _problem(each)}


def _problem(activation: Activation) -> str | None:
    sides = [activation, activation.topic_side] if isinstance(activation, DistributedActivation) else [activation]
    try:
        for side in sides:
            _check_url(side.connection_factory().login.url)
            if side.spec.selector:
                Selector.parse(side.spec.selector)
    except JMSError as error:
        return str(error)
    return None


def _check_url(text: str) -> None:
    """Check the scheme of a URL, and what else its provider can check without a connection.

    Raises:
        ConfigurationError: The URL cannot be used.
        ProviderNotInstalledError: The client library of its provider is missing.
    """
    url = ConnectionURL.parse(text).for_provider()
    check = getattr(find_provider(url.protocol), "check_url", None)  # providers of others may lack it
    if check is not None:
        check(url)
