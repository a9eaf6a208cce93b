"""The commands ``jmsjca file``: check, compact and back up the file of an embedded broker."""

from pathlib import Path
from typing import Annotated

import typer

from jmsjca.errors import ConfigurationError
from jmsjca.management.presentation import JsonOption, print_rows
from jmsjca.management.progress import busy
from jmsjca.providers.embedded import maintenance

__all__ = ["file_app"]

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
