"""The commands for queues, messages and dead letters. ``dlq export`` and ``dlq import`` use JSON lines."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from jmsjca.destinations import Queue
from jmsjca.errors import ConfigurationError, InvalidArgumentError, JMSError, MessageFormatError, excerpt
from jmsjca.management.insight import Change, Changes, Edit, Insight, selector_of_ids
from jmsjca.management.message_changes import parse_property, text_message
from jmsjca.management.presentation import (
    HelpGroup,
    JsonOption,
    PropertyOption,
    SelectorOption,
    UrlOption,
    WholeOption,
    broker_url,
    is_terminal,
    parse_destination,
    print_field,
    print_json,
    print_rows,
    print_text,
    queue_name,
    text_option,
    with_progress,
)
from jmsjca.management.views import (
    MessageView,
    change_row,
    destination_row,
    message_row,
    rate_row,
    record_details,
    record_row,
    subscription_row,
)
from jmsjca.messages.message import DeliveryMode, Message
from jmsjca.messages.object_message import ObjectMessage, plain_data_of
from jmsjca.outbound.factory import ConnectionFactory
from jmsjca.redelivery.moved_copy import plain_copy
from jmsjca.transactions.stored_message import decode_message, encode_message

__all__ = ["dead_letter_app", "find_message", "print_changes", "queue_app", "subscription_app"]

queue_app = typer.Typer(rich_markup_mode=None)
dead_letter_app = typer.Typer(
    rich_markup_mode=None, cls=HelpGroup, help="Inspect, replay, edit, drop, export and import dead letters."
)

subscription_app = typer.Typer(
    rich_markup_mode=None, cls=HelpGroup, help="List, browse and remove durable subscriptions."
)

_SubscriptionArgument = Annotated[str, typer.Argument(help="The name of the subscription.", callback=text_option)]
_ClientIdOption = Annotated[
    str | None, typer.Option(help="The client id, if several subscriptions have the name.", callback=text_option)
]
_QueueArgument = Annotated[str, typer.Argument(help="The queue.", callback=queue_name)]
_LettersArgument = Annotated[str, typer.Argument(help="The dead-letter queue.", callback=queue_name)]
_IdArgument = Annotated[str, typer.Argument(help="The id of the message, as browse shows it.")]
_LetterIdArgument = Annotated[str, typer.Argument(help="The id of the dead letter, as dlq list shows it.")]
_TargetArgument = Annotated[str, typer.Argument(help="NAME, queue:NAME or topic:NAME.")]
_BodyOption = Annotated[
    str | None, typer.Option(help="The new text of the body; without it, the body stays.", callback=text_option)
]
_SetOption = Annotated[
    list[str] | None,
    typer.Option("--property", "-p", help="A property to set, NAME=VALUE; may be repeated.", callback=text_option),
]
_RemoveOption = Annotated[list[str] | None, typer.Option(help="A property to remove; may be repeated.")]
_AllOption = Annotated[bool, typer.Option("--all", help="Delete all; needed without a selector.")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the messages, and change nothing.")]


@queue_app.command()
def queues(
    url: UrlOption,
    rates: Annotated[
        float | None, typer.Option(help="Measure the messages per second of each queue, for so many seconds.")
    ] = None,
    whole: WholeOption = False,
    json: JsonOption = False,
) -> None:
    """List queues with their depths and consumers, and topics."""
    insight = Insight(broker_url(url))
    if rates is None:
        rows = map(destination_row, insight.destinations())
    else:
        rows = map(rate_row, insight.destination_rates(rates))
    print_rows(rows, as_json=json, shorten=None if whole else "name")


@queue_app.command()
def create(queue: _QueueArgument, url: UrlOption, json: JsonOption = False) -> None:
    """Create a queue. An existing queue stays unchanged."""
    Insight(broker_url(url)).create(Queue(queue))
    print_rows([{"queue": queue, "outcome": "created"}], as_json=json)


@queue_app.command()
def remove(queue: _QueueArgument, url: UrlOption, json: JsonOption = False) -> None:
    """Delete a queue with its messages. A queue with consumers is not deleted."""
    Insight(broker_url(url)).remove(Queue(queue))
    print_rows([{"queue": queue, "outcome": "removed"}], as_json=json)


@queue_app.command()
def browse(
    queue: _QueueArgument,
    url: UrlOption,
    selector: SelectorOption = None,
    page: Annotated[int | None, typer.Option(help="The page, from 1; all messages without it.")] = None,
    page_size: Annotated[int | None, typer.Option(help="Messages of a page; 50 without it.")] = None,
    json: JsonOption = False,
) -> None:
    """Show the messages that wait in a queue, without consuming them."""
    insight = Insight(broker_url(url), must_exist=True)
    if page is None and page_size is not None:
        page = 1
    found = insight.messages(queue, selector, page=page, page_size=50 if page_size is None else page_size)
    print_rows(map(message_row, found), as_json=json)


@queue_app.command()
def view(
    queue: _QueueArgument,
    message_id: _IdArgument,
    url: UrlOption,
    json: JsonOption = False,
) -> None:
    """Show one message: headers, properties, and the body by type."""
    message = find_message(Insight(broker_url(url)), queue, message_id, "browse")
    if json:
        print_json(message_row(message))
        return
    shown = MessageView.of(message)
    for name, value in {"kind": shown.kind, **shown.headers}.items():
        print_field(name, value)
    for entry in shown.properties:
        print_field(f"property {entry.name}", f"{entry.value} ({entry.type})")
    for entry in shown.entries:
        print_field(f"entry {entry.name}", f"{entry.value} ({entry.type})")
    if shown.text is not None:
        print_text(shown.text)


@queue_app.command()
def edit(
    queue: _QueueArgument,
    message_id: _IdArgument,
    url: UrlOption,
    body: _BodyOption = None,
    properties: _SetOption = None,
    remove: _RemoveOption = None,
    json: JsonOption = False,
) -> int:
    """Replace a message by an edited copy at the end of the queue, in one transaction."""
    wanted, insight = _edit_of(body, properties, remove), Insight(broker_url(url))
    find_message(insight, queue, message_id, "browse")
    return print_changes([insight.edit(queue, message_id, wanted)], as_json=json)


@queue_app.command()
def copy(
    queue: _QueueArgument,
    to: _TargetArgument,
    url: UrlOption,
    selector: SelectorOption = None,
    dry_run: _DryRun = False,
    json: JsonOption = False,
) -> int:
    """Send copies of messages to another destination; the messages stay."""
    target = parse_destination(to)
    changes = Insight(broker_url(url), must_exist=True).copy(queue, selector, to=target, dry_run=dry_run)
    return print_changes(changes, as_json=json)


@queue_app.command("publish", help="Send a text message; the same as send.")
@queue_app.command()
def send(
    destination: _TargetArgument,
    body: Annotated[str, typer.Argument(help="The text.", callback=text_option)],
    url: UrlOption,
    properties: PropertyOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the message, and send nothing.")] = False,
    json: JsonOption = False,
) -> None:
    """Send a text message."""
    message = text_message(body, dict(map(parse_property, properties or [])))
    Insight(broker_url(url)).publish(message, parse_destination(destination), dry_run=dry_run)
    print_rows([message_row(message)], as_json=json)


@queue_app.command()
def receive(
    queue: _QueueArgument,
    url: UrlOption,
    selector: SelectorOption = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait.")] = 1.0,
    json: JsonOption = False,
) -> int:
    """Receive one message; it is written before it is acknowledged. The exit status is 1 if there is no message."""
    factory = ConnectionFactory(broker_url(url))
    with factory.create_connection() as connection, connection.create_session(acknowledge_mode="client") as session:
        message = session.create_consumer(Queue(queue), selector).receive(timeout)
        print_rows([] if message is None else [message_row(message)], as_json=json)
        session.acknowledge()
    return int(message is None)


@queue_app.command()
def move(
    queue: _QueueArgument,
    to: _TargetArgument,
    url: UrlOption,
    selector: SelectorOption = None,
    dry_run: _DryRun = False,
    json: JsonOption = False,
) -> int:
    """Move messages to another destination, each in one transaction. The exit status is 1 if one is gone."""
    target = parse_destination(to)
    changes = Insight(broker_url(url), must_exist=True).move(queue, selector, to=target, dry_run=dry_run)
    return print_changes(changes, as_json=json)


@queue_app.command(help="Delete the messages that wait in a queue.")
@dead_letter_app.command("drop", help="Delete dead letters.")
def purge(
    queue: _QueueArgument,
    url: UrlOption,
    selector: SelectorOption = None,
    all_messages: _AllOption = False,
    dry_run: _DryRun = False,
    json: JsonOption = False,
) -> int:
    """Delete messages. Without a selector, --all is required."""
    if not ((selector and selector.strip()) or all_messages or dry_run):
        raise typer.BadParameter("Without --selector this deletes every message: add --all to do that.")
    changes = Insight(broker_url(url), must_exist=True).delete(queue, selector, dry_run=dry_run)
    return print_changes(changes, as_json=json)


@subscription_app.command("list")
def list_subscriptions(url: UrlOption, whole: WholeOption = False, json: JsonOption = False) -> None:
    """List durable subscriptions with their depths and consumers."""
    rows = map(subscription_row, Insight(broker_url(url)).subscriptions())
    print_rows(rows, as_json=json, shorten=None if whole else "name")


@subscription_app.command("browse")
def browse_subscription(
    name: _SubscriptionArgument,
    url: UrlOption,
    client_id: _ClientIdOption = None,
    selector: SelectorOption = None,
    json: JsonOption = False,
) -> None:
    """Show the messages that wait in a durable subscription, without consuming them."""
    insight = Insight(broker_url(url))
    found = insight.subscription_messages(insight.subscription(name, client_id).subscription, selector)
    print_rows(map(message_row, found), as_json=json)


@subscription_app.command("remove")
def remove_subscription(
    name: _SubscriptionArgument,
    url: UrlOption,
    client_id: _ClientIdOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the subscription, and change nothing.")] = False,
    json: JsonOption = False,
) -> None:
    """Delete a durable subscription with its messages. One with consumers is not deleted."""
    insight = Insight(broker_url(url))
    found = insight.subscription(name, client_id).subscription
    if not dry_run:
        insight.unsubscribe(found)
    outcome = "planned" if dry_run else "removed"
    row = {"name": name, "client_id": found.client_id, "topic": found.topic.name, "outcome": outcome}
    print_rows([row], as_json=json)


@dead_letter_app.command("list")
def list_letters(
    queue: _LettersArgument, url: UrlOption, selector: SelectorOption = None, json: JsonOption = False
) -> None:
    """List dead letters by origin, reason and age."""
    records = Insight(broker_url(url), must_exist=True).dead_letters(queue, selector)
    print_rows(map(record_row, records), as_json=json)


@dead_letter_app.command()
def show(
    queue: _LettersArgument,
    message_id: _LetterIdArgument,
    url: UrlOption,
    json: JsonOption = False,
) -> None:
    """Show a dead letter: its body, its failure and the stack trace."""
    insight = Insight(broker_url(url))
    message = find_message(insight, queue, message_id, "dlq list")
    [record] = insight.records(queue, [message])
    details, whole = record_details(record), message_row(message)
    if json:
        print_json({**details, "message": whole})
        return
    trace = details.pop("stack_trace")
    for name, value in {**details, "body": whole["body"]}.items():
        print_field(name, value)
    print_text(str(trace or "no stack trace recorded"))


@dead_letter_app.command()
def replay(
    queue: _LettersArgument,
    url: UrlOption,
    selector: SelectorOption = None,
    to: Annotated[str | None, typer.Option(help="A destination for all: NAME, queue:NAME or topic:NAME.")] = None,
    rate: Annotated[float | None, typer.Option(help="The maximum number of messages in a second.")] = None,
    dry_run: _DryRun = False,
    json: JsonOption = False,
) -> int:
    """Send dead letters back to their origins, each in one transaction. The exit status is 1 if one is gone."""
    target = parse_destination(to) if to else None
    changes = Insight(broker_url(url), must_exist=True).replay(queue, selector, to=target, rate=rate, dry_run=dry_run)
    return print_changes(changes, as_json=json)


@dead_letter_app.command("edit")
def edit_letter(
    queue: _LettersArgument,
    message_id: _LetterIdArgument,
    url: UrlOption,
    body: _BodyOption = None,
    properties: _SetOption = None,
    remove: _RemoveOption = None,
    to: Annotated[str | None, typer.Option(help="The destination: NAME, queue:NAME or topic:NAME.")] = None,
    dry_run: _DryRun = False,
    json: JsonOption = False,
) -> int:
    """Edit a dead letter and replay it, in one transaction. The exit status is 1 if it is gone."""
    edit = _edit_of(body, properties, remove)
    insight, target = Insight(broker_url(url)), parse_destination(to) if to else None
    edit.check(find_message(insight, queue, message_id, "dlq list"))
    changes = insight.replay(queue, selector_of_ids([message_id]), to=target, edit=edit, dry_run=dry_run)
    if not changes.total:  # another consumer has received it since
        raise _no_message(queue, message_id, "dlq list")
    return print_changes(changes, as_json=json)


@dead_letter_app.command()
def export(queue: _LettersArgument, url: UrlOption, selector: SelectorOption = None) -> None:
    """Write dead letters as JSON lines, with body and failure. The queue is not changed."""
    messages = Insight(broker_url(url), must_exist=True).all_messages(queue, selector)
    for message in messages if is_terminal() else with_progress(messages, "messages"):
        print_json(_message_line(message), lines=True)


@dead_letter_app.command("import")
def import_letters(
    queue: _LettersArgument,
    file: Annotated[Path, typer.Argument(help="JSON lines of dlq export.")],
    url: UrlOption,
    json: JsonOption = False,
) -> None:
    """Send the messages in a file to a queue, all in one transaction. Each gets a new id."""
    try:
        with file.open(encoding="utf-8") as lines:
            size = file.stat().st_size
            read = with_progress(lines, "bytes", size, size=lambda line: len(line.encode()))
            count = Insight(broker_url(url)).send_all(queue, _read_lines(read))
    except JMSError:  # some JMS errors are also an OSError
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} cannot be read: {error}.") from error
    print_rows([{"queue": queue, "imported": count}], as_json=json)


def _edit_of(body: str | None, properties: list[str] | None, remove: list[str] | None) -> Edit:
    """Build the edit from the options.

    Raises:
        InvalidArgumentError: There is no change, or a property is not ``NAME=VALUE`` with a valid name.
    """
    if body is None and not properties and not remove:
        raise InvalidArgumentError("There is nothing to edit: add --body, --property or --remove.")
    wanted = text_message("", dict(map(parse_property, properties or []))).properties
    return Edit(body, dict(wanted), remove or [])


def find_message(insight: Insight, queue: str, message_id: str, shown_by: str) -> Message:
    """Return a message of a queue.

    Args:
        insight: Reads the broker.
        queue: The queue.
        message_id: The message id.
        shown_by: The command that lists ids, named in the error.

    Raises:
        JMSError: The queue has no such message.
    """
    found = insight.messages(queue, selector_of_ids([message_id]), page=1, page_size=1)
    if not found:
        raise _no_message(queue, message_id, shown_by)
    return found[0]


def _no_message(queue: str, message_id: str, shown_by: str) -> JMSError:
    """Return the error for an unknown id. It is not an argument error: a consumer may have received the message."""
    return JMSError(f"The queue {queue} has no message {message_id!r:.100}; jmsjca {shown_by} {queue} shows the ids.")


def print_changes(changes: Iterable[Change], *, as_json: bool) -> int:
    """Write changes, and return the exit status: 1 if a message is gone or has no id.

    If a change fails, the completed changes are written before the error is raised.

    Args:
        changes: The changes. Each is carried out when it is read.
        as_json: True for JSON.
    """
    total = changes.total if isinstance(changes, Changes) else None
    found: list[dict[str, object]] = []
    try:
        found.extend(change_row(each) for each in with_progress(changes, "messages", total))
    finally:
        if found:
            print_rows(found, as_json=as_json)
    if not found:
        print_rows([], as_json=as_json)
    return int(any(each["outcome"] in {"gone", "skipped"} for each in found))


_STORED = "stored"


def _message_line(message: Message) -> dict[str, object]:
    """Return a message for one line: its readable fields, and its exact content in the field ``stored``.

    The expiration is left out, because the message would expire in the file. An object message whose data is not from
    a Python client has no ``stored``.
    """
    row = message_row(message)
    if isinstance(message, ObjectMessage) and plain_data_of(message) is not None:
        return {**row, _STORED: None}
    headers, body = encode_message(plain_copy(message))
    stored = {
        "headers": headers,
        "body": None if body is None else b64encode(body).decode(),
        "priority": int(message.priority),
        "persistent": message.delivery_mode is DeliveryMode.PERSISTENT,
    }
    return {**row, _STORED: stored}


def _read_lines(lines: Iterable[str]) -> Iterator[Message]:
    """Yield the messages of lines that `_message_line` has written.

    Raises:
        InvalidArgumentError: A line does not hold a message.
    """
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _message(number, line)


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
