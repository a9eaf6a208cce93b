"""Options and output of all commands: the URL option, tables, JSON, progress bars."""

import errno
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import typer
from typer.core import TyperGroup

from jmsjca.config.connection_url import ConnectionURL
from jmsjca.destinations import Destination, Queue, named_destination
from jmsjca.errors import ConfigurationError, InvalidArgumentError, InvalidDestinationError, excerpt
from jmsjca.management.views import visible
from jmsjca.messages.json_text import with_finite_numbers

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = [
    "HealthFilesOption",
    "HelpGroup",
    "JsonOption",
    "PropertyOption",
    "SelectorOption",
    "UrlOption",
    "WholeOption",
    "broker_url",
    "busy",
    "decoded",
    "from_environment",
    "is_terminal",
    "parse_destination",
    "print_field",
    "print_json",
    "print_output",
    "print_rows",
    "print_text",
    "queue_name",
    "text_option",
    "with_progress",
    "wrapped",
]

ItemT = TypeVar("ItemT")

T = TypeVar("T", bound=str | list[str] | None)

UrlOption = Annotated[
    str,
    typer.Option(
        "--url",
        envvar="JMSJCA_URL",
        help="The connection URL; env:NAME reads it from an environment variable, which process lists do not show.",
    ),
]
SelectorOption = Annotated[str | None, typer.Option("--selector", "-s", help="Only the messages that it selects.")]
WholeOption = Annotated[bool, typer.Option("--whole", "-w", help="Show long names whole on a narrow terminal.")]
HealthFilesOption = Annotated[
    list[Path] | None, typer.Option("--file", "-f", help="A health file that a worker writes; may be repeated.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON instead of a table.")]

_MAX_CELL = 200
_GAP = 2  # between two columns
_MIN_NAME = 20  # characters of a shortened name
_MAX_SUMMARY = 500
_FIELD_WIDTH = 15  # the length of "delivery count:", the longest header name
_REFERENCE = "env:"


def from_environment(text: str, option: str = "--url") -> str:
    """Return the value of an option. ``env:NAME`` stands for the value of an environment variable.

    Args:
        text: The value, or ``env:NAME``.
        option: Name of the option, for the error.

    Raises:
        ConfigurationError: The environment variable is not set.
    """
    if not text.startswith(_REFERENCE):
        return text
    name = text.removeprefix(_REFERENCE)
    if not os.environ.get(name):
        raise ConfigurationError(
            f"The environment variable {excerpt(name)!r} of {option} is not set: export it with the URL."
        )
    return os.environ[name]


class HelpGroup(TyperGroup):
    """A group of commands. Its help lists commands with whole summaries, under ``headings`` or else "Commands"."""

    headings: Mapping[str, Sequence[str]] = {}

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the names and the summaries of the commands."""
        left: dict[str, Any] = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        groups = {heading: [(name, left.pop(name)) for name in names] for heading, names in self.headings.items()}
        for heading, commands in {**groups, "Commands": list(left.items())}.items():
            if commands:
                with formatter.section(heading):
                    formatter.write_dl([(name, each.get_short_help_str(_MAX_SUMMARY)) for name, each in commands])


def broker_url(text: str) -> str:
    """Return the URL of ``--url``. The broker must live longer than the command.

    Args:
        text: The URL, or ``env:NAME``.

    Raises:
        ConfigurationError: The environment variable is not set; or the broker exists only in the memory of a process.
    """
    found = from_environment(text)
    url = ConnectionURL.parse(found)
    if url.protocol == "embedded" and not url.path.strip("/"):
        raise ConfigurationError(
            f"{url} is a broker in the memory of one process, and ends with this command: name the file of a broker, "
            "for example embedded:///var/lib/app/broker.db."
        )
    return found


def parse_destination(text: str) -> Destination:
    """Parse ``name``, ``queue:name`` or ``topic:name``.

    Raises:
        InvalidArgumentError: The name is not valid for a destination.
    """
    decoded(text, "The destination")
    try:
        return named_destination(text)
    except InvalidDestinationError as error:  # an argument error: the broker has not refused anything
        raise InvalidArgumentError(str(error)) from error


def decoded(text: T, what: str) -> T:
    """Return a text or several texts, after checking that all their bytes could be decoded.

    Python represents undecodable bytes as lone surrogates.

    Args:
        text: The text, or several; None if not given.
        what: Description of the text, for the error.

    Raises:
        InvalidArgumentError: A text has undecodable bytes.
    """
    for each in [text] if isinstance(text, str) else cast("list[str]", text or []):
        try:
            each.encode()
        except UnicodeEncodeError:
            encoding = sys.getfilesystemencoding()
            raise InvalidArgumentError(f"{what} cannot be decoded: write it in the encoding {encoding}.") from None
    return text


def text_option(param: typer.CallbackParam, given: T) -> T:
    """Callback of typer for text arguments and options: checks them with `decoded`."""
    return decoded(given, f"A text of {param.name!r:.100}")


PropertyOption = Annotated[
    list[str] | None, typer.Option("--property", "-p", help="A text property, NAME=VALUE.", callback=text_option)
]


def queue_name(name: str) -> str:
    """Return the queue name of a command argument: ``name`` or ``queue:name``.

    Raises:
        InvalidArgumentError: The name is not valid for a queue, or it names a topic.
    """
    found = parse_destination(name)
    if not isinstance(found, Queue):
        shown = excerpt(name)
        raise InvalidArgumentError(
            f"{shown} is a topic, and this command needs a queue; for a queue of this name write queue:{shown}."
        )
    return found.name


def print_output(text: str, *, nl: bool = True) -> None:
    """Write a text to the output.

    Args:
        text: The text.
        nl: True to end the line.

    Raises:
        OSError: The text cannot be written, or the output is closed. The caller must not treat the text as written.
    """
    if sys.stdout is None:
        raise OSError(errno.EBADF, "The output is closed")
    typer.echo(text, nl=nl)


def is_terminal() -> bool:
    """Return True if the output is a terminal: not a file, not a pipe, not closed."""
    return sys.stdout is not None and sys.stdout.isatty()


def print_json(value: object, *, lines: bool = False) -> None:
    """Write a value as JSON. Numbers that JSON lacks become text: "NaN", "Infinity", "-Infinity".

    Args:
        value: The value.
        lines: True for a single line; False for indented text.
    """
    indent, has_all = None if lines else 2, (getattr(sys.stdout, "encoding", "") or "").lower().startswith("utf")
    finite = with_finite_numbers(value)
    print_output(json.dumps(finite, indent=indent, ensure_ascii=not has_all, default=str, allow_nan=False))


def print_field(name: str, value: object) -> None:
    """Write one field of a message as a line, or as several lines on a narrow terminal."""
    head, text = f"{name.replace('_', ' ') + ':':<{_FIELD_WIDTH}} ", visible("-" if value is None else str(value), None)
    for part in text.expandtabs().split("\n"):
        for line in wrapped(head, part, _terminal_columns()):
            print_output(line)
        head = " " * len(head)


def print_text(text: str) -> None:
    """Write text of several lines without control characters; on a narrow terminal wrap it and keep its indentation."""
    columns = _terminal_columns()
    for line in visible(text, None).expandtabs().split("\n"):
        words = line.lstrip()
        indent = len(line) - len(words) if columns is None else min(len(line) - len(words), columns // 2)
        for part in wrapped(" " * indent, words, columns):
            print_output(part)


def print_rows(rows: Iterable[Mapping[str, object]], *, as_json: bool, shorten: str | None = None) -> None:
    """Write rows as a table with aligned columns, or as a JSON array.

    A table escapes control characters, because names and texts come from other programs and could control the terminal.
    On a terminal that is too narrow for the table, each row becomes a paragraph with one line per value, wrapped
    between words.

    Args:
        rows: The rows, with equal keys.
        as_json: True for JSON.
        shorten: Key of a column of names. Long names get an ellipsis in the middle if that makes the table fit; None
            shortens nothing.
    """
    found = list(rows)
    if as_json:
        print_json(found)
        return
    if not found:
        print_output("nothing found")
        return
    table = [
        [name.replace("_", " ") for name in found[0]],
        *([_cell(value) for value in row.values()] for row in found),
    ]
    columns, widths = _terminal_columns(), [max(map(len, column)) for column in zip(*table, strict=True)]
    excess = 0 if columns is None else sum(widths) + _GAP * (len(widths) - 1) - columns
    for place, name in enumerate(found[0]):
        if name == shorten and excess > 0 and widths[place] - excess >= _MIN_NAME:
            widths[place], excess = widths[place] - excess, 0
            table = [[*row[:place], _shortened(row[place], widths[place]), *row[place + 1 :]] for row in table]
    if columns is not None and excess > 0:
        lines = [line for row in table[1:] for line in _paragraph(table[0], row, columns)][:-1]
    else:
        lines = [_aligned(row, widths) for row in table]
    for line in lines:
        print_output(line)


def _shortened(text: str, width: int) -> str:
    """Shorten a text that is longer than the width, with an ellipsis in the middle."""
    head, tail = width // 2, (width - 1) // 2
    return text if len(text) <= width else f"{text[:head]}\u2026{text[-tail:]}"


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return (" " * _GAP).join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _terminal_columns() -> int | None:
    """Return the width of the terminal in columns; None for a file or a pipe, which have no limit."""
    return shutil.get_terminal_size().columns if is_terminal() else None


def _paragraph(names: Sequence[str], cells: Sequence[str], columns: int) -> Iterator[str]:
    """Yield the lines of one row, and an empty line."""
    margin = max(map(len, names)) + 3
    for name, cell in zip(names, cells, strict=True):
        yield from (line.rstrip() for line in wrapped(f"{name}:".ljust(margin), cell, columns))
    yield ""


def wrapped(head: str, text: str, columns: int | None) -> Sequence[str]:
    """Wrap a text into lines after a head. Words that are longer than a line are split.

    Args:
        head: Beginning of the first line. The other lines are indented to its width.
        text: The text.
        columns: Width of the terminal in columns; None for no limit.
    """
    if columns is None or len(head) + len(text) <= columns:
        return [head + text]
    indent = " " * min(len(head), columns // 2)
    return textwrap.wrap(text, columns, initial_indent=head, subsequent_indent=indent, break_on_hyphens=False) or [
        head.rstrip()
    ]


def _cell(value: object) -> str:
    return "-" if value is None else excerpt(value, _MAX_CELL)


def with_progress(
    items: Iterable[ItemT], what: str, total: int | None = None, *, size: Callable[[ItemT], int] = lambda _: 1
) -> Iterator[ItemT]:
    """Yield items with a progress bar, which advances when the caller asks for the next item.

    Args:
        items: The items.
        what: A word for the work.
        total: Sum of the sizes; None if not known.
        size: Returns the size of an item.
    """
    if not sys.stderr.isatty():
        yield from items
        return
    with _bar(known=total is not None) as bar:
        task = bar.add_task(what, total=total)
        for item in items:
            yield item
            bar.advance(task, size(item))


@contextmanager
def busy(what: str) -> Generator[None]:
    """Show that a step of unknown length is running, with its duration so far.

    Args:
        what: A word for the work.

    Yields:
        Nothing; the step is the body of the block.
    """
    if not sys.stderr.isatty():
        yield
        return
    with _bar(known=False) as bar:
        bar.add_task(what, total=None)
        yield


def _bar(*, known: bool) -> "Progress":
    """Create a bar that disappears at its end."""
    from rich.console import Console  # slow to import
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    counts = (MofNCompleteColumn(), TimeRemainingColumn()) if known else (TextColumn("{task.completed}"),)
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *counts,
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
