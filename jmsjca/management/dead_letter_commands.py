"""The commands ``jmsjca dlq``: list, show, replay, edit and drop dead letters, and exchange them as JSON lines."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from jmsjca.errors import ConfigurationError, InvalidArgumentError, JMSError, MessageFormatError, excerpt
from jmsjca.management.dead_letter import DeadLetterRecord
from jmsjca.management.insight import Change, Changes, Edit, Insight, selector_of_ids
from jmsjca.management.message_changes import parse_properties
from jmsjca.management.presentation import (
    JsonOption,
    SelectorOption,
    UrlOption,
    broker_url,
    check_decoded,
    check_queue_name,
    is_terminal,
    message_row,
    parse_destination,
    print_field,
    print_json,
    print_rows,
    print_text,
    selects_some,
    with_progress,
)
from jmsjca.messages.message import DeliveryMode, Message
from jmsjca.messages.object_message import ObjectMessage, plain_data_of
from jmsjca.redelivery.moved_copy import plain_copy
from jmsjca.transactions.stored_message import decode_message, encode_message

__all__ = ["dead_letter_app", "edit_of", "find_message", "message_line", "print_changes", "read_lines"]

dead_letter_app = typer.Typer(
    rich_markup_mode=None, help="Inspect, replay, edit, drop, export and import dead letters."
)

_QueueArgument = Annotated[str, typer.Argument(help="The dead-letter queue.", callback=check_queue_name)]
_IdArgument = Annotated[str, typer.Argument(help="The id of the dead letter, as dlq list shows it.")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the messages, and change nothing.")]
BodyOption = Annotated[
    str | None, typer.Option(help="The new text of the body; without it, the body stays.", callback=check_decoded)
]
PropertyOption = Annotated[
    list[str] | None,
    typer.Option("--property", "-p", help="A property to set, NAME=VALUE; may be repeated.", callback=check_decoded),
]
RemoveOption = Annotated[list[str] | None, typer.Option(help="A property to remove; may be repeated.")]


@dead_letter_app.command("list")
def list_letters(
    queue: _QueueArgument, url: UrlOption, selector: SelectorOption = None, json: JsonOption = False
) -> None:
    """List dead letters by origin, reason and age."""
    records = Insight(broker_url(url), must_exist=True).dead_letters(queue, selector)
    print_rows(map(_row, records), as_json=json)


@dead_letter_app.command()
def show(
    queue: _QueueArgument,
    message_id: _IdArgument,
    url: UrlOption,
    json: JsonOption = False,
) -> None:
    """Show a dead letter with its body and its failure, the stack trace included."""
    insight = Insight(broker_url(url))
    message = find_message(insight, queue, message_id, "dlq list")
    [record] = insight.records(queue, [message])
    details = {
        **_row(record),
        "original_id": record.original_id,
        "expiration": None if record.expiration is None else record.expiration.isoformat(timespec="seconds"),
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
    print_text(record.stack_trace or "no stack trace recorded")


@dead_letter_app.command()
def replay(  # typer calls it by name
    queue: _QueueArgument,
    url: UrlOption,
    selector: SelectorOption = None,
    to: Annotated[str | None, typer.Option(help="A destination for all: NAME, queue:NAME or topic:NAME.")] = None,
    rate: Annotated[float | None, typer.Option(help="The maximum number of messages in a second.")] = None,
    dry_run: _DryRun = False,
    json: JsonOption = False,
) -> int:
    """Send dead letters back to where each came from, each in one transaction. The exit status is 1 if one is gone."""
    target = parse_destination(to) if to else None
    changes = Insight(broker_url(url), must_exist=True).replay(queue, selector, to=target, rate=rate, dry_run=dry_run)
    return print_changes(changes, as_json=json)


@dead_letter_app.command("edit")
def edit_letter(  # typer calls it by name
    queue: _QueueArgument,
    message_id: _IdArgument,
    url: UrlOption,
    body: BodyOption = None,
    properties: PropertyOption = None,
    remove: RemoveOption = None,
    to: Annotated[str | None, typer.Option(help="The destination: NAME, queue:NAME or topic:NAME.")] = None,
    dry_run: _DryRun = False,
    json: JsonOption = False,
) -> int:
    """Edit a dead letter and replay it, in one transaction. The exit status is 1 if it is gone."""
    edit = edit_of(body, properties, remove)
    insight, target = Insight(broker_url(url)), parse_destination(to) if to else None
    edit.check(find_message(insight, queue, message_id, "dlq list"))
    changes = insight.replay(queue, selector_of_ids([message_id]), to=target, edit=edit, dry_run=dry_run)
    if not changes.total:  # a consumer has received it since
        raise _no_message(queue, message_id, "dlq list")
    return print_changes(changes, as_json=json)


@dead_letter_app.command()
def drop(  # typer calls it by name
    queue: _QueueArgument,
    url: UrlOption,
    selector: SelectorOption = None,
    all_messages: Annotated[bool, typer.Option("--all", help="Drop all; needed without a selector.")] = False,
    dry_run: _DryRun = False,
    json: JsonOption = False,
) -> int:
    """Delete dead letters."""
    if not (selects_some(selector) or all_messages or dry_run):
        raise typer.BadParameter("Without --selector this deletes every dead letter: add --all to do that.")
    changes = Insight(broker_url(url), must_exist=True).delete(queue, selector, dry_run=dry_run)
    return print_changes(changes, as_json=json)


@dead_letter_app.command()
def export(queue: _QueueArgument, url: UrlOption, selector: SelectorOption = None) -> None:
    """Write dead letters as JSON lines, each with its body and its failure. The queue is not changed."""
    messages = Insight(broker_url(url), must_exist=True).all_messages(queue, selector)
    for message in messages if is_terminal() else with_progress(messages, "messages"):
        print_json(message_line(message), lines=True)


@dead_letter_app.command("import")
def import_letters(
    queue: _QueueArgument,
    file: Annotated[Path, typer.Argument(help="JSON lines of dlq export.")],
    url: UrlOption,
    json: JsonOption = False,
) -> None:
    """Send the messages of a file to a queue, all in one transaction. Each gets a new id."""
    try:
        with file.open(encoding="utf-8") as lines:
            size = file.stat().st_size
            read = with_progress(lines, "bytes", size, size=lambda line: len(line.encode()))
            count = Insight(broker_url(url)).send_all(queue, read_lines(read))
    except JMSError:  # some are an OSError too
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} cannot be read: {error}.") from error
    print_rows([{"queue": queue, "imported": count}], as_json=json)


def edit_of(body: str | None, properties: list[str] | None, remove: list[str] | None) -> Edit:
    """Return the edit that the options describe.

    Raises:
        InvalidArgumentError: They describe none, or a property is not ``NAME=VALUE`` with a valid name.
    """
    if body is None and not properties and not remove:
        raise InvalidArgumentError("There is nothing to edit: add --body, --property or --remove.")
    return Edit(body, parse_properties(properties or []), remove or [])


def find_message(insight: Insight, queue: str, message_id: str, shown_by: str) -> Message:
    """Return a message of a queue.

    Args:
        insight: Reads the broker.
        queue: The queue.
        message_id: The id of the message.
        shown_by: The command that shows ids.

    Raises:
        JMSError: The queue has no such message.
    """
    found = insight.messages(queue, selector_of_ids([message_id]), page=1, page_size=1)
    if not found:
        raise _no_message(queue, message_id, shown_by)
    return found[0]


def _no_message(queue: str, message_id: str, shown_by: str) -> JMSError:
    """Return the error for an id that no message has: no wrong argument, as a consumer may have received it."""
    return JMSError(f"The queue {queue} has no message {message_id!r:.100}; jmsjca {shown_by} {queue} shows the ids.")


def print_changes(changes: Iterable[Change], *, as_json: bool) -> int:
    """Write changes; return the exit status: 1 if a message was not found any more, or has no id.

    If one fails, those that were made before are written, and the error is raised.

    Args:
        changes: The changes, of which each is carried out when it is read.
        as_json: True for JSON.
    """
    total = changes.total if isinstance(changes, Changes) else None
    found: list[dict[str, object]] = []
    try:
        found.extend(_change_row(each) for each in with_progress(changes, "messages", total))
    except BaseException:
        if found:
            print_rows(found, as_json=as_json)
        raise
    print_rows(found, as_json=as_json)
    return int(any(each["outcome"] in {"gone", "skipped"} for each in found))


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
    return {
        "message_id": change.message_id,
        "target": target,
        "outcome": change.outcome,
        "replays": change.replays,
        "expired": change.expired,
    }


_STORED = "stored"


def message_line(message: Message) -> dict[str, object]:
    """Return a message for one line: its readable fields, and its exact content in the field ``stored``.

    The expiration is left out: the message would expire in the file. An object message with data of another client
    than Python has no ``stored``.
    """
    return {**message_row(message), _STORED: _stored(message)}


def read_lines(lines: Iterable[str]) -> Iterator[Message]:
    """Yield the messages of lines that `message_line` has made.

    Raises:
        InvalidArgumentError: A line holds no message.
    """
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _message(number, line)


def _stored(message: Message) -> dict[str, object] | None:
    if isinstance(message, ObjectMessage) and plain_data_of(message) is not None:
        return None
    headers, body = encode_message(plain_copy(message))
    return {
        "headers": headers,
        "body": None if body is None else b64encode(body).decode(),
        "priority": int(message.priority),
        "persistent": message.delivery_mode is DeliveryMode.PERSISTENT,
    }


def _message(number: int, line: str) -> Message:
    try:
        stored: dict[str, Any] = json.loads(line)[_STORED]
        body = None if stored["body"] is None else b64decode(stored["body"], validate=True)
        message = decode_message(stored["headers"], body)
        message.priority = int(stored["priority"])
        message.delivery_mode = DeliveryMode.PERSISTENT if stored["persistent"] else DeliveryMode.NON_PERSISTENT
    except (ValueError, TypeError, KeyError, RecursionError, MessageFormatError) as error:
        raise InvalidArgumentError(
            f"Line {number} holds no message of jmsjca dlq export ({excerpt(error, 100)}): correct or remove it. "
            "Nothing was sent."
        ) from error
    return message
