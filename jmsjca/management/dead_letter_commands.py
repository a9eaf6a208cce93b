"""The commands ``jmsjca dlq``: list, show, replay, drop and export dead letters."""

from collections.abc import Iterable
from typing import Annotated

import typer

from jmsjca.errors import InvalidArgumentError
from jmsjca.management.dead_letter import DeadLetterRecord
from jmsjca.management.insight import Change, Insight
from jmsjca.management.presentation import (
    JsonOption,
    SelectorOption,
    UrlOption,
    broker_url,
    message_row,
    parse_destination,
    print_json,
    print_rows,
)
from jmsjca.messages.message import Message

__all__ = ["dead_letter_app", "print_changes"]

dead_letter_app = typer.Typer(rich_markup_mode=None, help="Inspect, replay and drop dead letters.")

_QueueArgument = Annotated[str, typer.Argument(help="The dead-letter queue.")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the messages, and change nothing.")]


@dead_letter_app.command("list")
def list_letters(
    queue: _QueueArgument, url: UrlOption, selector: SelectorOption = None, json: JsonOption = False
) -> None:
    """List dead letters by origin, reason and age."""
    records = Insight(broker_url(url)).dead_letters(queue, selector)
    print_rows(map(_row, records), as_json=json)


@dead_letter_app.command()
def show(
    queue: _QueueArgument,
    message_id: Annotated[str, typer.Argument(help="The id of the dead letter, as dlq list shows it.")],
    url: UrlOption,
    json: JsonOption = False,
) -> None:
    """Show a dead letter with its body and its failure, the stack trace included."""
    message = _find(Insight(broker_url(url)), queue, message_id)
    record = DeadLetterRecord.of(message)
    details = {
        **_row(record),
        "original_id": record.original_id,
        "user_data": dict(record.user_data),
        "message": message_row(message),
        "stack_trace": record.stack_trace,
    }
    if json:
        print_json(details)
        return
    for name, value in {**details, "message": message_row(message)["body"], "stack_trace": None}.items():
        if name != "stack_trace":
            print_field("body" if name == "message" else name, value)
    typer.echo(_escaped(record.stack_trace or "no stack trace recorded"))


@dead_letter_app.command()
def replay(  # noqa: PLR0917  # typer calls it by name
    queue: _QueueArgument,
    url: UrlOption,
    selector: SelectorOption = None,
    to: Annotated[str | None, typer.Option(help="A destination for all: NAME, queue:NAME or topic:NAME.")] = None,
    dry_run: _DryRun = False,
    json: JsonOption = False,
) -> int:
    """Send dead letters back to where each came from, each in one transaction. The exit status is 1 if one is gone."""
    target = parse_destination(to) if to else None
    return print_changes(Insight(broker_url(url)).replay(queue, selector, to=target, dry_run=dry_run), as_json=json)


@dead_letter_app.command()
def drop(  # noqa: PLR0917  # typer calls it by name
    queue: _QueueArgument,
    url: UrlOption,
    selector: SelectorOption = None,
    all_messages: Annotated[bool, typer.Option("--all", help="Drop all; needed without a selector.")] = False,
    dry_run: _DryRun = False,
    json: JsonOption = False,
) -> int:
    """Delete dead letters."""
    if not (selector or all_messages or dry_run):
        raise typer.BadParameter("Without --selector this deletes every dead letter: add --all to do that.")
    return print_changes(Insight(broker_url(url)).delete(queue, selector, dry_run=dry_run), as_json=json)


@dead_letter_app.command()
def export(queue: _QueueArgument, url: UrlOption, selector: SelectorOption = None) -> None:
    """Write dead letters as JSON lines, each with its body and its failure. The queue is not changed."""
    insight, page = Insight(broker_url(url)), 1
    while found := insight.messages(queue, selector, page=page, page_size=_EXPORT_PAGE):
        for message in found:
            print_json(message_row(message), lines=True)
        page += 1


_EXPORT_PAGE = 1000


def print_changes(changes: Iterable[Change], *, as_json: bool) -> int:
    """Write changes; return the exit status: 1 if a message was not found any more, or has no id.

    Args:
        changes: The changes, of which each is carried out when it is read.
        as_json: True for JSON.
    """
    found = [_change_row(each) for each in changes]
    print_rows(found, as_json=as_json)
    return int(any(each["outcome"] in {"gone", "skipped"} for each in found))


def print_field(name: str, value: object) -> None:
    """Write one field of a message as a line."""
    typer.echo(f"{name.replace('_', ' ') + ':':<14}{_escaped('-' if value is None else str(value))}")


def _find(insight: Insight, queue: str, message_id: str) -> Message:
    quoted = message_id.replace("'", "''")
    found = insight.messages(queue, f"JMSMessageID = '{quoted}'", page_size=1)
    if not found:
        raise InvalidArgumentError(
            f"The queue {queue} has no message {message_id!r:.100}; jmsjca dlq list {queue} shows the ids."
        )
    return found[0]


def _row(record: DeadLetterRecord) -> dict[str, object]:
    return {
        "message_id": record.message_id,
        "origin": None if record.origin is None else str(record.origin),
        "moved": None if record.moved is None else record.moved.isoformat(timespec="seconds"),
        "redeliveries": record.redeliveries,
        "replays": record.replays,
        "reason": record.reason,
        "error": record.error,
    }


def _change_row(change: Change) -> dict[str, object]:
    target = None if change.target is None else str(change.target)
    return {"message_id": change.message_id, "target": target, "outcome": change.outcome, "replays": change.replays}


def _escaped(text: str) -> str:
    """Return a text of several lines without other control characters."""
    return "".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text)
