"""Progress bars of long work. They are on the error output, and only if it is a terminal: the output stays as it is."""

import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["busy", "with_progress"]

T = TypeVar("T")


def with_progress(
    items: Iterable[T], what: str, total: int | None = None, *, size: Callable[[T], int] = lambda _: 1
) -> Iterator[T]:
    """Yield items; the bar advances when the caller asks for the next one.

    Args:
        items: The items.
        what: A word for the work.
        total: The sum of the sizes; None if it is not known.
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
    """Show that a step of unknown length goes on, with the time that it has taken.

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
    """Return a bar that disappears at its end."""
    from rich.console import Console  # noqa: PLC0415  # slow to import
    from rich.progress import (  # noqa: PLC0415
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
