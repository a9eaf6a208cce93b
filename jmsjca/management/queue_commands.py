"""The commands on queues and messages, and those that explain selectors, ladders and capabilities."""

import re
from dataclasses import asdict
from typing import Annotated

import typer

from jmsjca.destinations import Queue
from jmsjca.management.dead_letter_commands import (
    BodyOption,
    PropertyOption,
    RemoveOption,
    edit_of,
    find_message,
    print_changes,
)
from jmsjca.management.destination_info import destination_row, rate_row
from jmsjca.management.doctor import diagnose
from jmsjca.management.insight import Insight
from jmsjca.management.message_changes import check_properties, parse_properties, parse_property
from jmsjca.management.message_view import MessageView
from jmsjca.management.prefetch_memory import prefetch_rows
from jmsjca.management.presentation import (
    JsonOption,
    SelectorOption,
    UrlOption,
    broker_url,
    check_decoded,
    check_queue_name,
    message_row,
    parse_destination,
    print_field,
    print_json,
    print_rows,
    print_text,
    selects_some,
)
from jmsjca.management.redelivery_ladder import redelivery_ladder
from jmsjca.management.worker import load_adapter
from jmsjca.messages.message import TextMessage
from jmsjca.outbound.factory import ConnectionFactory
from jmsjca.redelivery.policy import RedeliveryPolicy
from jmsjca.selectors import Selector
from jmsjca.selectors.literals import read_integer, read_real

__all__ = ["queue_app", "selector_app"]

queue_app = typer.Typer(rich_markup_mode=None)
selector_app = typer.Typer(rich_markup_mode=None, help="Check selectors.")

# As in the grammar of selectors.
_NUMBER = re.compile(
    r"[+-]?(?:(?P<integer>(?:0[xX][0-9a-fA-F]+|[0-9]+)[lL]?)"
    r"|(?P<real>(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?|[0-9]+(?:[eE][+-]?[0-9]+[fFdD]?|[fFdD])))"
)

_QueueArgument = Annotated[str, typer.Argument(help="The queue.", callback=check_queue_name)]
_PropertyOption = Annotated[
    list[str] | None, typer.Option("--property", "-p", help="A text property, NAME=VALUE.", callback=check_decoded)
]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the messages, and change nothing.")]


@queue_app.command()
def queues(
    url: UrlOption,
    rates: Annotated[
        float | None, typer.Option(help="Measure the messages per second of each queue, for so many seconds.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List queues with their depths and consumers, and topics."""
    insight = Insight(broker_url(url))
    if rates is None:
        print_rows(map(destination_row, insight.destinations()), as_json=json)
    else:
        print_rows(map(rate_row, insight.destination_rates(rates)), as_json=json)


@queue_app.command()
def create(queue: _QueueArgument, url: UrlOption, json: JsonOption = False) -> None:
    """Create a queue; one that exists stays as it is."""
    Insight(broker_url(url)).create(Queue(queue))
    print_rows([{"queue": queue, "outcome": "created"}], as_json=json)


@queue_app.command()
def remove(queue: _QueueArgument, url: UrlOption, json: JsonOption = False) -> None:
    """Delete a queue with its messages. A queue with consumers is not deleted."""
    Insight(broker_url(url)).remove(Queue(queue))
    print_rows([{"queue": queue, "outcome": "removed"}], as_json=json)


@queue_app.command()
def browse(  # noqa: PLR0917  # typer calls it by name
    queue: _QueueArgument,
    url: UrlOption,
    selector: SelectorOption = None,
    page: Annotated[int, typer.Option(help="The page, from 1.")] = 1,
    page_size: Annotated[int, typer.Option(help="Messages of a page.")] = 50,
    json: JsonOption = False,
) -> None:
    """Show the messages that wait in a queue, without consuming them."""
    found = Insight(broker_url(url)).messages(queue, selector, page=page, page_size=page_size)
    print_rows(map(message_row, found), as_json=json)


@queue_app.command()
def view(
    queue: _QueueArgument,
    message_id: Annotated[str, typer.Argument(help="The id of the message, as browse shows it.")],
    url: UrlOption,
    json: JsonOption = False,
) -> None:
    """Show one message: its headers, its properties and its body by type."""
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
def edit(  # noqa: PLR0917  # typer calls it by name
    queue: _QueueArgument,
    message_id: Annotated[str, typer.Argument(help="The id of the message, as browse shows it.")],
    url: UrlOption,
    body: BodyOption = None,
    properties: PropertyOption = None,
    remove: RemoveOption = None,
    json: JsonOption = False,
) -> int:
    """Replace a message by an edited copy at the end of the queue, in one transaction."""
    wanted, insight = edit_of(body, properties, remove), Insight(broker_url(url))
    find_message(insight, queue, message_id, "browse")
    return print_changes([insight.edit(queue, message_id, wanted)], as_json=json)


@queue_app.command()
def copy(  # noqa: PLR0917  # typer calls it by name
    queue: _QueueArgument,
    to: Annotated[str, typer.Argument(help="NAME, queue:NAME or topic:NAME.")],
    url: UrlOption,
    selector: SelectorOption = None,
    dry_run: _DryRun = False,
    json: JsonOption = False,
) -> int:
    """Send copies of messages to another destination; the messages stay."""
    target = parse_destination(to)
    return print_changes(Insight(broker_url(url)).copy(queue, selector, to=target, dry_run=dry_run), as_json=json)


@queue_app.command()
def send(
    destination: Annotated[str, typer.Argument(help="NAME, queue:NAME or topic:NAME.")],
    body: Annotated[str, typer.Argument(help="The text.", callback=check_decoded)],
    url: UrlOption,
    properties: _PropertyOption = None,
    json: JsonOption = False,
) -> None:
    """Send a text message."""
    message = TextMessage(body, properties=parse_properties(properties or []))
    with ConnectionFactory(broker_url(url)).create_connection() as connection, connection.create_session() as session:
        session.create_producer(parse_destination(destination)).send(message)
    print_rows([message_row(message)], as_json=json)


@queue_app.command()
def receive(
    queue: _QueueArgument,
    url: UrlOption,
    selector: SelectorOption = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait.")] = 1.0,
    json: JsonOption = False,
) -> int:
    """Receive one message, which is written before it is acknowledged. Without a message the exit status is 1."""
    factory = ConnectionFactory(broker_url(url))
    with factory.create_connection() as connection, connection.create_session(acknowledge_mode="client") as session:
        message = session.create_consumer(Queue(queue), selector).receive(timeout)
        print_rows([] if message is None else [message_row(message)], as_json=json)
        session.acknowledge()
    return int(message is None)


@queue_app.command()
def move(  # noqa: PLR0917  # typer calls it by name
    queue: _QueueArgument,
    to: Annotated[str, typer.Argument(help="NAME, queue:NAME or topic:NAME.")],
    url: UrlOption,
    selector: SelectorOption = None,
    dry_run: _DryRun = False,
    json: JsonOption = False,
) -> int:
    """Move messages to another destination, each in one transaction. The exit status is 1 if one is gone."""
    target = parse_destination(to)
    return print_changes(Insight(broker_url(url)).move(queue, selector, to=target, dry_run=dry_run), as_json=json)


@queue_app.command()
def purge(  # noqa: PLR0917  # typer calls it by name
    queue: _QueueArgument,
    url: UrlOption,
    selector: SelectorOption = None,
    all_messages: Annotated[bool, typer.Option("--all", help="Delete all; needed without a selector.")] = False,
    dry_run: _DryRun = False,
    json: JsonOption = False,
) -> int:
    """Delete the messages that wait in a queue."""
    if not (selects_some(selector) or all_messages or dry_run):
        raise typer.BadParameter("Without --selector this deletes every message: add --all to do that.")
    return print_changes(Insight(broker_url(url)).delete(queue, selector, dry_run=dry_run), as_json=json)


@queue_app.command()
def capabilities(url: Annotated[str, typer.Argument(help="The URL, or env:NAME.")], json: JsonOption = False) -> None:
    """Show the capabilities of a broker."""
    found = asdict(Insight(broker_url(url)).capabilities())
    print_rows(({"capability": name, "value": value} for name, value in found.items()), as_json=json)


@queue_app.command()
def doctor(url: Annotated[str, typer.Argument(help="The URL, or env:NAME.")], json: JsonOption = False) -> int:
    """Check a broker: reach it, log in, list what it lacks, measure a round trip. The exit status is 1 if it fails."""
    findings = list(diagnose(broker_url(url)))
    print_rows(map(asdict, findings), as_json=json)
    return int(any(each.result == "failed" for each in findings))


@queue_app.command()
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
    """Draw the ladder of a redelivery handling, or show the memory of the listeners of an adapter."""
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
    properties: _PropertyOption = None,
    json: JsonOption = False,
) -> int:
    """Check a selector against the properties of a message. The exit status is 1 if it does not match."""
    values = dict(map(_typed_pair, properties or []))
    check_properties(values)
    matches = Selector.parse(selector).matches(TextMessage("", properties=values))
    print_rows([{"selector": selector, "matches": matches}], as_json=json)
    return int(not matches)


def _typed_pair(text: str) -> tuple[str, object]:
    """Return a property; a value that is a literal of selectors for a number, true or false is one."""
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
