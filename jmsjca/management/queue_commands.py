"""The commands on queues and messages, and those that explain: selectors, ladders, capabilities, ``doctor``."""

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Annotated

import typer

from jmsjca.adapter import ResourceAdapter
from jmsjca.config.activation_spec import ActivationSpec
from jmsjca.config.connection_url import ConnectionURL
from jmsjca.config.limits import Limits
from jmsjca.destinations import Queue
from jmsjca.errors import JMSError, excerpt
from jmsjca.management.dead_letter_commands import (
    BodyOption,
    PropertyOption,
    RemoveOption,
    edit_of,
    find_message,
    print_changes,
)
from jmsjca.management.insight import Insight, destination_row, rate_row
from jmsjca.management.message_changes import check_properties, parse_properties, parse_property
from jmsjca.management.message_view import MessageView
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
from jmsjca.management.worker import load_adapter
from jmsjca.messages.message import TextMessage
from jmsjca.outbound.connection import Connection
from jmsjca.outbound.factory import ConnectionFactory
from jmsjca.redelivery.policy import RedeliveryPolicy, redelivery_ladder
from jmsjca.selectors import Selector
from jmsjca.selectors.syntax import read_integer, read_real
from jmsjca.spi import RARELY_REACHED, DeliveryLimits

__all__ = ["Finding", "diagnose", "prefetch_rows", "queue_app", "selector_app"]

_PER_HANDLER = 2  # messages that the mode cc prefetches for each handler

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
def browse(  # typer calls it by name
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
def edit(  # typer calls it by name
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
def copy(  # typer calls it by name
    queue: _QueueArgument,
    to: Annotated[str, typer.Argument(help="NAME, queue:NAME or topic:NAME.")],
    url: UrlOption,
    selector: SelectorOption = None,
    dry_run: _DryRun = False,
    json: JsonOption = False,
) -> int:
    """Send copies of messages to another destination; the messages stay."""
    target = parse_destination(to)
    changes = Insight(broker_url(url), must_exist=True).copy(queue, selector, to=target, dry_run=dry_run)
    return print_changes(changes, as_json=json)


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
def move(  # typer calls it by name
    queue: _QueueArgument,
    to: Annotated[str, typer.Argument(help="NAME, queue:NAME or topic:NAME.")],
    url: UrlOption,
    selector: SelectorOption = None,
    dry_run: _DryRun = False,
    json: JsonOption = False,
) -> int:
    """Move messages to another destination, each in one transaction. The exit status is 1 if one is gone."""
    target = parse_destination(to)
    changes = Insight(broker_url(url), must_exist=True).move(queue, selector, to=target, dry_run=dry_run)
    return print_changes(changes, as_json=json)


@queue_app.command()
def purge(  # typer calls it by name
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
    changes = Insight(broker_url(url), must_exist=True).delete(queue, selector, dry_run=dry_run)
    return print_changes(changes, as_json=json)


@queue_app.command()
def capabilities(url: Annotated[str, typer.Argument(help="The URL, or env:NAME.")], json: JsonOption = False) -> None:
    """Show the capabilities of a broker."""
    found = asdict(Insight(broker_url(url)).capabilities())
    print_rows(({"capability": name, "value": value} for name, value in found.items()), as_json=json)


@queue_app.command()
def doctor(
    url: Annotated[str, typer.Argument(help="The URL, or env:NAME.")],
    queue: Annotated[
        list[str] | None, typer.Option(help="A queue whose delivery limit is checked; all that are listed without.")
    ] = None,
    json: JsonOption = False,
) -> int:
    """Check a broker: reach it, log in, list what it lacks, measure a round trip. The exit status is 1 if it fails."""
    findings = list(diagnose(broker_url(url), [Queue(name) for name in queue or ()]))
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


def prefetch_rows(adapter: ResourceAdapter) -> Iterator[dict[str, object]]:
    """Yield one row for each listener of an adapter: its consumers, and the messages and bytes that they prefetch.

    ``usual_bytes`` is the bound while messages are of similar sizes: `Limits.prefetch_bytes` and one message for each
    consumer. ``worst_bytes`` is the bound if all messages suddenly are as large as `Limits.message_bytes` permits.
    """
    limits = adapter.limits
    for activation in adapter.activations:
        consumers, prefetched = _bounds(activation.spec, limits)
        each = min(limits.prefetch_bytes + limits.message_bytes, prefetched * limits.message_bytes)
        yield {
            "listener": activation.name,
            "mode": activation.spec.concurrency_mode,
            "consumers": consumers,
            "prefetched": consumers * prefetched,
            "usual_bytes": consumers * each,
            "worst_bytes": consumers * prefetched * limits.message_bytes,
        }


def _bounds(spec: ActivationSpec, limits: Limits) -> tuple[int, int]:
    """Return the number of consumers, and of the messages that one of them prefetches at most."""
    size = spec.batch_size or 1
    if spec.concurrency_mode == "serial":
        return 1, limits.chunk
    if spec.concurrency_mode == "cc":
        return 1, max(size, limits.prefetch_messages, _PER_HANDLER * spec.endpoint_pool_max_size)
    return spec.endpoint_pool_max_size if spec.destination_type == "queue" else 1, max(size, limits.chunk)


_ROUND_TRIPS = 5
_PATIENCE = 10.0
_CLOCK_SECONDS = 1.0  # a smaller difference is no fault
_NEEDED = {
    "atomic": "receipts and sends are not one transaction: a listener that sends may send twice. {elsewhere}",
    "selectors": "consumers cannot filter. {elsewhere}",
    "browse": "queues cannot be browsed, so that jmsjca browse and dlq do not work. {elsewhere}",
    "delivery_count": "deliveries are counted by this process only: a new process counts from 1 again",
    "admin": "depths are unknown. {management}",
}
_ELSEWHERE = "The page 'What each broker can do' has the brokers and protocols with it"
_MANAGEMENT = "On ActiveMQ Classic and RabbitMQ add the option management_url; on other brokers use AMQP"
_CLOCKS = "On ActiveMQ Classic add the option management_url; Artemis and Broker-J report it over AMQP"
_SHOWN = 10  # queues
_LOW_LIMIT = (
    "messages that are returned more often are dropped, also prefetched ones that no handler saw. Declare the queues"
    f" with x-delivery-limit={RARELY_REACHED} or more, and with a dead-letter exchange"
)
_SYNCHRONISE = "expirations and delivery delays are wrong by as much: synchronise both clocks with NTP"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        check: The name of the check.
        result: "ok", "missing" (a capability, or a value that the broker does not report) or "failed".
        detail: A value, or what is missing or wrong, with its remedy.
    """

    check: str
    result: str
    detail: str


def diagnose(url: str, queues: Sequence[Queue] = ()) -> Iterator[Finding]:
    """Check a broker step by step; a failure ends the checks, except for that of the clock.

    Args:
        url: The connection URL.
        queues: The queues whose delivery limits are checked; without any all that the broker lists.
    """
    try:
        yield Finding("URL", "ok", str(ConnectionURL.parse(url)))
        began = time.perf_counter()
        with ConnectionFactory(url).create_connection() as connection:
            yield Finding("connection and login", "ok", f"{1000 * (time.perf_counter() - began):.1f} ms")
            yield _broker(connection)
            yield from _capabilities(connection)
            yield _clock(connection)
            yield from _delivery_limits(connection, queues)
            yield from _round_trips(connection)
    except JMSError as error:
        yield Finding("failure", "failed", f"{type(error).__name__}: {error}")


def _broker(connection: Connection) -> Finding:
    announced = connection.metadata.broker
    if not announced:
        return Finding("broker", "missing", "it announces no product and version: only what is certain is used")
    return Finding("broker", "ok", excerpt(announced, 100))


def _capabilities(connection: Connection) -> Iterator[Finding]:
    for name, consequence in _NEEDED.items():
        has = getattr(connection.capabilities, name)
        remedy = consequence.format(elsewhere=_ELSEWHERE, management=_MANAGEMENT)
        yield Finding(f"capability {name}", "ok" if has else "missing", "" if has else remedy)


def _clock(connection: Connection) -> Finding:
    """Compare the broker's clock with that of this machine; a user without permission gets no time."""
    admin = connection.admin
    if admin is None:
        return Finding("clock", "missing", f"the broker does not report its time over this protocol. {_CLOCKS}")
    try:
        admin.clock()  # the first request also opens what it needs
        began = time.time()
        found = admin.clock()
        ended = time.time()
    except JMSError as error:
        return Finding("clock", "missing", f"the broker does not report its time: {error}")
    if found is None:
        return Finding("clock", "missing", "the broker does not report its time over this protocol")
    return clock_finding(began, found, ended)


def _delivery_limits(connection: Connection, queues: Sequence[Queue]) -> Iterator[Finding]:
    """Find the queues that drop messages which are returned a few times, prefetched ones included."""
    admin, check = connection.admin, "delivery limits"
    limiting: object = admin
    if admin is None or not isinstance(limiting, DeliveryLimits):
        return
    if not queues and not connection.capabilities.lists_destinations:
        yield Finding(check, "missing", f"name the queues to check with --queue. {_MANAGEMENT}")
        return
    checked = queues or [each for each in admin.destinations() if isinstance(each, Queue)]
    limits = {each.name: limiting.delivery_limit(each) for each in checked}
    low = [f"{name} ({limit})" for name, limit in limits.items() if limit is not None and limit < RARELY_REACHED]
    if low:
        more = f" and {len(low) - _SHOWN} more" if len(low) > _SHOWN else ""
        yield Finding(check, "missing", f"{', '.join(low[:_SHOWN])}{more}: {_LOW_LIMIT}")
    else:
        yield Finding(check, "ok", f"{len(limits)} queues checked")


def clock_finding(began: float, found: float, ended: float) -> Finding:
    """Return the finding for a time that a broker has reported.

    Args:
        began: The time of this machine at the request, in seconds.
        found: The broker's time; a broker that reports whole seconds has left out the rest.
        ended: The time of this machine at the response.
    """
    rest = 0.5 if found.is_integer() else 0.0
    difference, uncertain = found + rest - (began + ended) / 2, (ended - began) / 2 + rest
    measured = f"{difference:+.3f} s from that of this machine, ± {uncertain:.3f} s"
    if abs(difference) <= _CLOCK_SECONDS + uncertain:
        return Finding("clock", "ok", measured)
    return Finding("clock", "failed", f"{measured}: {_SYNCHRONISE}")


def _round_trips(connection: Connection) -> Iterator[Finding]:
    """Send to a temporary queue and receive from it; without temporary queues nothing is sent."""
    if not connection.capabilities.temporary:
        yield Finding("round trip", "missing", "no temporary queues; try jmsjca send and receive with a queue of yours")
        return
    with connection.create_session() as session:
        queue = session.create_temporary_queue()
        producer, consumer = session.create_producer(queue), session.create_consumer(queue)
        seconds: list[float] = []
        for _ in range(_ROUND_TRIPS):
            began = time.perf_counter()
            producer.send(TextMessage("jmsjca doctor"))
            if consumer.receive(_PATIENCE) is None:
                yield Finding("round trip", "failed", f"a message did not arrive within {_PATIENCE:g} s")
                return
            seconds.append(time.perf_counter() - began)
        yield Finding("round trip", "ok", f"{1000 * median(seconds):.2f} ms, the median of {_ROUND_TRIPS}")
