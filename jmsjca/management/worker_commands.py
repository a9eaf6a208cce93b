"""The commands for workers: ``jmsjca status`` and ``jmsjca docs``."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from jmsjca.management.asyncapi import document, load_adapter
from jmsjca.management.health import Report, read_health_file
from jmsjca.management.presentation import JsonOption, print_json, print_rows

__all__ = ["worker_app"]

worker_app = typer.Typer(rich_markup_mode=None)


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
) -> int:
    """Write the AsyncAPI 3 document of the listeners of an adapter, as JSON. The adapter is not started."""
    sys.path.insert(0, "")  # the module of the application is in the working directory, as for python -m
    print_json(document(load_adapter(adapter), title, version))
    return 0


def _rows(reports: Sequence[Report]) -> Iterator[dict[str, object]]:
    """Yield one row for each activation; one for a worker without activations, or with a stale file."""
    for report in reports:
        activations = cast("list[dict[str, Any]]", report.get("activations") or [])
        for each in activations:
            yield {"pid": report.get("pid"), **{name: each[name] for name in ("name", "status", "since", "reason")}}
        if not activations or report["status"] not in {each["status"] for each in activations}:
            yield {
                "pid": report.get("pid"),
                "name": "the worker",
                "status": report["status"],
                "since": report.get("since"),
                "reason": report.get("reason"),
            }
