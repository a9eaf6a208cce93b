"""Insight: reads and manages the destinations, messages and dead letters of one broker.

Each change of a message is a separate transaction, so an interruption at any moment leaves every message in exactly one
queue. The command line presents this service.
"""

import math
import re
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from itertools import chain, islice
from threading import TIMEOUT_MAX
from typing import TYPE_CHECKING

from jmsjca import spi
from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.errors import (
    InvalidArgumentError,
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    MessageFormatError,
    NotSupportedError,
)
from jmsjca.log_records import get_logger
from jmsjca.management.dead_letter import DeadLetterRecord, with_origins
from jmsjca.management.message_changes import (
    Change,
    Changes,
    Edit,
    Handle,
    carry_out,
    copy_message,
    delete,
    edited,
    move,
    paced,
    replay,
    selector_of_ids,
)
from jmsjca.messages.message import Message
from jmsjca.outbound.connection import Connection
from jmsjca.outbound.factory import ConnectionFactory
from jmsjca.outbound.session import Session
from jmsjca.redelivery.moved_copy import remaining_life
from jmsjca.selectors import Selector

if TYPE_CHECKING:
    from jmsjca.adapter import ResourceAdapter

__all__ = [
    "Change",
    "Changes",
    "DestinationInfo",
    "Edit",
    "Insight",
    "SubscriptionInfo",
    "selector_of_ids",
]

logger = get_logger("jmsjca.management")

_DEAD_LETTERS = re.compile(r"(?<![a-z])dlq|dead[-_. ]?letter", re.IGNORECASE)
_SHORTEST_RATE, _LONGEST_RATE = 0.5, 60.0  # seconds between two counts of messages
_OF_ARTEMIS = "::"  # in the names of the queues of an address, which brokers do not list by these names
_KNOWN = 20  # subscriptions that an error names
_MAX_COMPARED = 100  # characters of a name


@dataclass(frozen=True, slots=True)
class DestinationInfo:
    """A destination of the broker.

    Attributes:
        destination: The destination.
        depth: Numbers of messages of a queue; None for a topic.
        activity: Consumers of a queue, and counters of its messages; None for a topic, or if the broker counts neither.
        added_per_second: Messages added per second; None if not measured.
        settled_per_second: Messages acknowledged per second; None if not measured.
        oldest: Time at which the first waiting message was sent; None if not known. Only `Insight.overview` sets it.
        dead_letters: True for a dead-letter queue with messages. Only `Insight.overview` sets it.
    """

    destination: Destination
    depth: spi.Depth | None
    activity: spi.Activity | None = None
    added_per_second: float | None = None
    settled_per_second: float | None = None
    oldest: datetime | None = None
    dead_letters: bool = False


@dataclass(frozen=True, slots=True)
class SubscriptionInfo:
    """A durable subscription.

    Attributes:
        subscription: The subscription.
        depth: Numbers of its messages.
        activity: Its consumers, and counters of its messages.
    """

    subscription: Subscription
    depth: spi.Depth
    activity: spi.Activity


def _in_order(found: Iterable[Destination]) -> list[Destination]:
    """Sort destinations by kind and name."""
    return sorted(found, key=lambda each: (each.kind, each.name))


def _describe(admin: spi.Admin, capabilities: spi.Capabilities, found: Destination) -> DestinationInfo:
    """Return a destination with depth and activity, as far as the broker counts them."""
    if found.kind == "topic":
        return DestinationInfo(found, None)
    counts = capabilities.counts_consumers or capabilities.counts_traffic
    return DestinationInfo(found, admin.depth(found), admin.activity(found) if counts else None)


def _measure_rates(
    admin: spi.Admin,
    capabilities: spi.Capabilities,
    found: Sequence[Destination],
    interval: float,
    pause: Callable[[float], None],
) -> Sequence[DestinationInfo]:
    """Measure the messages per second of each queue.

    Args:
        admin: Administration of the broker.
        capabilities: Capabilities of its connection.
        found: The destinations.
        interval: Seconds to measure.
        pause: Waits a number of seconds.

    Raises:
        InvalidArgumentError: The interval is not above 0, or infinite.
    """
    if not 0 < interval <= TIMEOUT_MAX:
        raise InvalidArgumentError(f"interval={interval} must be above 0 seconds, and finite.")
    before = {each: (admin.activity(each), time.monotonic()) for each in found if each.kind == "queue"}
    pause(interval)
    return [_with_rates(_describe(admin, capabilities, each), before.get(each)) for each in found]


def _with_rates(info: DestinationInfo, before: tuple[spi.Activity, float] | None) -> DestinationInfo:
    if before is None or info.activity is None:
        return info
    (earlier, began), later, ended = before, info.activity, time.monotonic()
    seconds = max(ended - began, 1e-9)
    return replace(
        info,
        added_per_second=((later.added or 0) - (earlier.added or 0)) / seconds,
        settled_per_second=((later.settled or 0) - (earlier.settled or 0)) / seconds,
    )


def _waiting(info: DestinationInfo) -> bool:
    return info.depth is not None and info.depth.total > 0


def _with_oldest(session: Session, info: DestinationInfo) -> DestinationInfo:
    """Add what the first waiting message of a queue shows, if the broker and the user's rights permit to browse it."""
    if not _waiting(info):
        return info
    is_named_so = _DEAD_LETTERS.search(info.destination.name) is not None
    try:
        first = next(iter(session.create_browser(Queue(info.destination.name))), None)
        letter = None if first is None else DeadLetterRecord.of(first)
    except JMSError:
        letter = None
    if letter is None:
        return replace(info, dead_letters=is_named_so)
    return replace(info, oldest=letter.moved, dead_letters=is_named_so or letter.reason is not None)


def _require_admin(connection: Connection, capability: str) -> spi.Admin:
    """Return the administration of a connection.

    Raises:
        NotSupportedError: The broker has no administration, or lacks the capability.
    """
    admin = connection.admin if getattr(connection.capabilities, capability) else None
    if admin is None:
        raise NotSupportedError(f"This broker lacks the capability {capability} over this protocol; name the queue.")
    return admin


def _subscription_admin(connection: Connection) -> spi.ListsSubscriptions:
    """Return the administration of subscriptions.

    Raises:
        NotSupportedError: The broker does not list its subscriptions.
    """
    admin: object = connection.admin
    if not isinstance(admin, spi.ListsSubscriptions):
        raise NotSupportedError(
            "This broker does not list its subscriptions over this protocol: use its own management, or delete one "
            "with session.unsubscribe."
        )
    return admin


def _describe_subscription(connection: Connection, found: Subscription) -> SubscriptionInfo:
    admin = _require_admin(connection, "admin")
    return SubscriptionInfo(found, admin.depth(found), admin.activity(found))


def _decodable(delivery: spi.Delivery) -> Message | None:
    try:
        DeadLetterRecord.of(delivery.message)  # decodes the headers
    except MessageFormatError as error:
        logger.warning("A message of a subscription is left out: %s", error)
        return None
    return delivery.message


class Insight:
    """Reads and manages the destinations, messages and dead letters of one broker. Thread-safe.

    Each call opens and closes a separate connection.

    Args:
        source: A resource adapter, a connection factory, or a connection URL.
        must_exist: True to raise an error when a queue that does not exist is read, if the broker lists its queues;
            False to return no messages.
    """

    def __init__(self, source: "ResourceAdapter | ConnectionFactory | str", *, must_exist: bool = False) -> None:
        self._must_exist = must_exist
        if isinstance(source, str):
            source = ConnectionFactory(source)
        # The time and the counters of the latest overview.
        self._counted: tuple[float, Mapping[Destination, tuple[spi.Activity, float]]] = (-math.inf, {})
        self._factory = source if isinstance(source, ConnectionFactory) else source.connection_factory()

    def capabilities(self) -> spi.Capabilities:
        """Return the capabilities of the broker."""
        with self._factory.create_connection() as connection:
            return connection.capabilities

    def destinations(self) -> Sequence[DestinationInfo]:
        """Return the queues, with their depths, and the topics, sorted by kind and name.

        Raises:
            NotSupportedError: The broker does not list its destinations.
        """
        with self._factory.create_connection() as connection:
            admin = _require_admin(connection, "lists_destinations")
            return [_describe(admin, connection.capabilities, each) for each in _in_order(admin.destinations())]

    def destination_rates(
        self, interval: float = 1.0, *, pause: Callable[[float], None] = time.sleep
    ) -> Sequence[DestinationInfo]:
        """Return the destinations, with the messages per second of each queue.

        Args:
            interval: Seconds to measure.
            pause: Waits a number of seconds.

        Raises:
            InvalidArgumentError: The interval is not above 0.
            NotSupportedError: The broker does not list its destinations, or does not count their traffic.
        """
        with self._factory.create_connection() as connection:
            _require_admin(connection, "lists_destinations")
            admin = _require_admin(connection, "counts_traffic")
            return _measure_rates(admin, connection.capabilities, _in_order(admin.destinations()), interval, pause)

    def overview(self, limit: int = 50) -> tuple[Sequence[DestinationInfo], int]:
        """Return the queues with depths, consumers, rates and the age of their messages, and the number of all queues.

        Dead-letter queues with messages come first, then the deepest queues. A dead-letter queue has "dlq" or "dead
        letter" in its name, or its first message records a failure. Rates are those since the previous call, if that
        was within a minute, and else those of half a second.

        Args:
            limit: Maximum number of queues that are returned. The depths of four times as many are read: on a broker
                with more queues, dead-letter queues by name, then the first queues by name.

        Raises:
            NotSupportedError: The broker does not list its destinations.
        """
        with self._factory.create_connection() as connection, connection.create_session() as session:
            admin = _require_admin(connection, "lists_destinations")
            listed = [each for each in admin.destinations() if each.kind == "queue" and not each.temporary]
            queues = sorted(listed, key=lambda each: (not _DEAD_LETTERS.search(each.name), each.name))
            found = self._rated(admin, connection.capabilities, queues[: 4 * limit])
            deepest = sorted(found, key=lambda each: -(each.depth.total if each.depth else 0))
            has_letters = [each for each in deepest if _DEAD_LETTERS.search(each.destination.name) and _waiting(each)]
            shown = [*has_letters, *(each for each in deepest if each not in has_letters)][:limit]
            peeked = [_with_oldest(session, each) for each in shown]
            return sorted(peeked, key=lambda each: not each.dead_letters), len(queues)

    def _rated(
        self, admin: spi.Admin, capabilities: spi.Capabilities, queues: Sequence[Destination]
    ) -> Sequence[DestinationInfo]:
        """Return queues with their rates since the previous call, as far as the broker counts messages."""
        if not capabilities.counts_traffic:
            return [_describe(admin, capabilities, each) for each in queues]
        moment, before = self._counted
        age = time.monotonic() - moment
        if age > _LONGEST_RATE:
            before, age = {each: (admin.activity(each), time.monotonic()) for each in queues}, 0.0
        if queues and age < _SHORTEST_RATE:
            time.sleep(_SHORTEST_RATE - age)
        found = [_describe(admin, capabilities, each) for each in queues]
        now = time.monotonic()
        self._counted = now, {each.destination: (each.activity, now) for each in found if each.activity}
        return [_with_rates(each, before.get(each.destination)) for each in found]

    def queue_info(self, queue: str) -> DestinationInfo:
        """Return the depth and the activity of one queue.

        Raises:
            NotSupportedError: The broker has no administration over this protocol.
        """
        with self._factory.create_connection() as connection:
            return _describe(_require_admin(connection, "admin"), connection.capabilities, Queue(queue))

    def subscriptions(self) -> Sequence[SubscriptionInfo]:
        """Return the durable subscriptions with depths and consumers, sorted by topic and name.

        Raises:
            NotSupportedError: The broker does not list its subscriptions.
        """
        with self._factory.create_connection() as connection:
            admin = _subscription_admin(connection)
            found = sorted(
                admin.subscriptions(), key=lambda each: (each.topic.name, str(each.name), each.client_id or "")
            )
            return [_describe_subscription(connection, each) for each in found]

    def subscription(self, name: str, client_id: str | None = None) -> SubscriptionInfo:
        """Return the durable subscription with a name, with its depth and consumers.

        Args:
            name: The name.
            client_id: The client id that it belongs to; None if the name is enough.

        Raises:
            InvalidArgumentError: There is no such subscription, or the name is not enough.
            NotSupportedError: The broker does not list its subscriptions.
        """
        with self._factory.create_connection() as connection:
            found = _subscription_admin(connection).subscriptions()
            chosen = [each for each in found if each.name == name and client_id in {None, each.client_id}]
            if len(chosen) == 1:
                return _describe_subscription(connection, chosen[0])
        known = sorted(f"{each.name} ({each.client_id or 'shared'})" for each in chosen or found)
        problem = "There are several durable subscriptions" if chosen else "There is no durable subscription"
        owner = "" if client_id is None else f" of the client id {client_id!r:.100}"
        raise InvalidArgumentError(f"{problem} {name!r:.100}{owner}: {', '.join(known[:_KNOWN]) or 'there are none'}.")

    def subscription_messages(
        self, source: Subscription, selector: str | None = None, *, page: int | None = None, page_size: int = 50
    ) -> Sequence[Message]:
        """Return the waiting messages of a durable subscription, all or one page, without consuming them.

        Messages that cannot be decoded are skipped.

        Args:
            source: The subscription.
            selector: Returns only matching messages; None returns all.
            page: Number of the page, from 1; None returns all messages.
            page_size: Messages per page; ignored without a page.

        Raises:
            InvalidArgumentError: The page or its size is below 1.
            InvalidSelectorError: The selector is invalid.
            NotSupportedError: The broker does not list its subscriptions.
        """
        bounds = (0, None) if page is None else _bounds_of(page, page_size)
        with self._factory.create_connection() as connection:
            chunks = _subscription_admin(connection).browse(source, selector=selector or None)
            messages = filter(None, map(_decodable, chain.from_iterable(chunks)))
            return list(islice(messages, *bounds))

    def unsubscribe(self, source: Subscription) -> None:
        """Delete a durable subscription with its messages.

        Raises:
            InvalidDestinationError: There is no such subscription.
            IllegalStateError: It has consumers.
            NotSupportedError: The broker does not list its subscriptions.
        """
        with self._factory.create_connection() as connection:
            _subscription_admin(connection).unsubscribe(source)

    def create(self, queue: Destination) -> None:
        """Create a queue. It is not an error if the queue exists.

        Raises:
            InvalidDestinationError: It is a topic, which needs no creation; or the broker refuses the name.
            NotSupportedError: The broker creates no queues over this protocol.
        """
        with self._factory.create_connection() as connection:
            _require_admin(connection, "creates_queues").create(queue)

    def remove(self, queue: Destination) -> None:
        """Delete a queue with its messages.

        Raises:
            InvalidDestinationError: The queue does not exist, or is temporary.
            IllegalStateError: The queue has consumers.
            NotSupportedError: The broker has no administration over this protocol.
        """
        with self._factory.create_connection() as connection:
            _require_admin(connection, "admin").remove(queue)

    def purge(self, queue: str) -> int:
        """Delete all waiting messages of a queue in one step, and return their number. Held messages stay.

        Raises:
            NotSupportedError: The broker has no administration over this protocol.
        """
        with self._factory.create_connection() as connection:
            return _require_admin(connection, "admin").purge(Queue(queue))

    def find_destinations(
        self, containing: str = "", *, page: int = 1, page_size: int = 50, interval: float | None = None
    ) -> tuple[Sequence[DestinationInfo], int]:
        """Return one page of the destinations with a text in their names, and the total number of matches.

        The broker is asked for the depths of this page only, so the call is fast on a broker with very many queues.

        Args:
            containing: The text; case-insensitive. An empty text matches all names.
            page: Number of the page, from 1.
            page_size: Destinations per page.
            interval: Seconds to measure the messages per second of the queues on the page; None does not measure.

        Raises:
            InvalidArgumentError: The page or its size is below 1, or the interval is not above 0.
            NotSupportedError: The broker does not list its destinations, or does not count their traffic.
        """
        start, stop = _bounds_of(page, page_size)
        with self._factory.create_connection() as connection:
            admin = _require_admin(connection, "lists_destinations")
            found = [each for each in _in_order(admin.destinations()) if containing.lower() in each.name.lower()]
            shown = found[start:stop]
            if interval is None:
                return [_describe(admin, connection.capabilities, each) for each in shown], len(found)
            admin = _require_admin(connection, "counts_traffic")
            return _measure_rates(admin, connection.capabilities, shown, interval, time.sleep), len(found)

    def message(self, queue: str, message_id: str) -> Message:
        """Return a waiting message of a queue, without consuming it.

        Raises:
            InvalidArgumentError: The queue has no message with this id.
            NotSupportedError: The broker cannot browse, or has no selectors.
        """
        found = self.messages(queue, selector_of_ids([message_id]), page=1, page_size=1)
        if not found:
            raise InvalidArgumentError(
                f"The queue {queue!r:.100} has no message {message_id!r:.100}: a consumer may have received it."
            )
        return found[0]

    def messages(
        self, queue: str, selector: str | None = None, *, page: int | None = None, page_size: int = 50
    ) -> Sequence[Message]:
        """Return the waiting messages of a queue, all or one page, without consuming them.

        Messages that cannot be decoded are skipped, with a warning in the log. If the messages of a queue do not
        fit into memory together, use pages or `all_messages`.

        Args:
            queue: Name of the queue.
            selector: Returns only matching messages; None returns all.
            page: Number of the page, from 1; None returns all messages.
            page_size: Messages per page, 50 by default; ignored without a page.

        Raises:
            InvalidArgumentError: The page or its size is below 1.
            InvalidSelectorError: The selector is invalid.
            InvalidDestinationError: The queue does not exist (with ``must_exist``).
            NotSupportedError: The broker cannot browse.
        """
        if page is None:
            return list(self.all_messages(queue, selector))
        bounds = _bounds_of(page, page_size)
        with self._connected() as (connection, session):
            return list(islice(self._browse(connection, session, queue, selector), *bounds))

    def all_messages(self, queue: str, selector: str | None = None) -> Iterator[Message]:
        """Yield the waiting messages of a queue, without consuming them, as `messages` returns them."""
        with self._connected() as (connection, session):
            yield from self._browse(connection, session, queue, selector)

    def dead_letters(self, queue: str, selector: str | None = None) -> Sequence[DeadLetterRecord]:
        """Return the records of the messages in a dead-letter queue, sorted by origin, reason and age (oldest first).

        Args:
            queue: The name of the dead-letter queue.
            selector: Only matching messages; None for all.

        Raises:
            InvalidSelectorError: The selector is invalid.
            NotSupportedError: The broker cannot browse.
        """
        return sorted(self.records(queue, self.all_messages(queue, selector)), key=_order)

    def records(self, queue: str, messages: Iterable[Message]) -> Sequence[DeadLetterRecord]:
        """Return the records of messages in a dead-letter queue, in the same order.

        If a message does not record its origin, the broker's management is asked, where it knows the origin.

        Args:
            queue: Name of the queue.
            messages: Messages that `messages` returned.
        """
        found = [DeadLetterRecord.of(message, queue) for message in messages]
        if all(record.origin for record in found):
            return found
        with self._factory.create_connection() as connection:
            return with_origins(found, queue, connection)

    def replay(
        self,
        queue: str,
        selector: str | None = None,
        *,
        to: Destination | None = None,
        edit: Edit | None = None,
        rate: float | None = None,
        dry_run: bool = False,
    ) -> Changes:
        """Send dead letters back to their origins. Each is sent and acknowledged in one transaction.

        The replay covers the messages that wait when it begins. A replayed message has its number of replays in the
        property ``_JMSJCA_ReplayCount``; if it fails again, its record has that number. It expires when the original
        would have expired. If that time is over, it does not expire, and its change has ``expired`` set.

        Args:
            queue: Name of the dead-letter queue.
            selector: Replays only matching messages; None replays all.
            to: Destination of all messages; None sends each to its origin.
            edit: Changes each message before it is sent; None changes nothing.
            rate: Maximum number of messages per second; None for no limit.
            dry_run: True to change nothing.

        Returns:
            An iterator over the changes. Each change is carried out when it is read.

        Raises:
            InvalidDestinationError: A message has no record of its origin, and ``to`` is None. Nothing is changed.
            InvalidArgumentError: The edit does not fit a message, or the rate is not above 0.
            NotSupportedError: The broker has no selectors, or cannot send and acknowledge atomically.
        """
        if rate is not None and not rate > 0:
            raise InvalidArgumentError(f"rate={rate} must be above 0; leave it out for no limit.")
        handle = replay if edit is None else edited(edit, as_replay=True)

        def plan(record: DeadLetterRecord) -> Change:
            """Plan the change of a dead letter."""
            return replace(_planned(record, to or _known_origin(record)), expired=remaining_life(record.expiration) < 0)

        return self._change(queue, selector, plan, handle, rate, dry_run=dry_run)

    def move(self, queue: str, selector: str | None = None, *, to: Destination, dry_run: bool = False) -> Changes:
        """Move messages to another destination, each in one transaction.

        Args:
            queue: Name of the queue.
            selector: Moves only matching messages; None moves all.
            to: The destination.
            dry_run: True to change nothing.

        Returns:
            An iterator over the changes. Each change is carried out when it is read.

        Raises:
            NotSupportedError: As `replay`.
        """
        return self._change(queue, selector, lambda record: _planned(record, to), move, dry_run=dry_run)

    def copy(self, queue: str, selector: str | None = None, *, to: Destination, dry_run: bool = False) -> Changes:
        """Send copies of messages to another destination, each in one transaction. The messages stay.

        A repeated call sends the copies again.

        Args:
            queue: Name of the queue.
            selector: Copies only matching messages; None copies all.
            to: The destination.
            dry_run: True to change nothing.

        Returns:
            An iterator over the changes. Each change is carried out when it is read.

        Raises:
            NotSupportedError: The broker cannot browse.
        """
        found = list(self.all_messages(queue, selector))  # read first: the copies may go to the same queue
        plan = [_planned(DeadLetterRecord.of(message), to) for message in found]
        return Changes(plan, iter(plan) if dry_run else self._copy(found, plan, to))

    def edit(
        self, queue: str, message_id: str, edit: Edit, *, to: Destination | None = None, dry_run: bool = False
    ) -> Change:
        """Replace a message by an edited copy with a new id, in one transaction.

        Args:
            queue: Name of the queue.
            message_id: Id of the message.
            edit: The changes.
            to: Destination of the copy; None puts it at the end of the same queue.
            dry_run: True to change nothing.

        Returns:
            The change, after its commit. Its outcome is "gone" if another consumer received the message first.

        Raises:
            InvalidArgumentError: The queue has no such message, or the edit does not fit it (`Edit.check`).
            NotSupportedError: As `replay`.
        """
        message = self.message(queue, message_id)
        edit.check(message)
        planned = _planned(DeadLetterRecord.of(message), to or Queue(queue))
        if dry_run:
            return planned
        [change] = self._carry_out(queue, [planned], edited(edit, as_replay=False), None)
        return change

    def delete(self, queue: str, selector: str | None = None, *, dry_run: bool = False) -> Changes:
        """Delete messages, each in one transaction.

        Args:
            queue: Name of the queue.
            selector: Deletes only matching messages; None deletes all.
            dry_run: True to change nothing.

        Returns:
            An iterator over the changes. Each change is carried out when it is read.

        Raises:
            NotSupportedError: As `replay`.
        """
        return self._change(queue, selector, lambda record: _planned(record, None), delete, dry_run=dry_run)

    def publish(self, message: Message, to: Destination, *, dry_run: bool = False) -> Change:
        """Send a message.

        Args:
            message: The message. The send sets its id.
            to: The destination.
            dry_run: True to send nothing.

        Raises:
            InvalidDestinationError: The broker refuses the destination.
            JMSError: The message was not sent, or it is unknown whether it was.
        """
        if dry_run:
            return Change("", to, "planned")
        with self._session() as session:
            session.create_producer(to).send(message)
        return Change(message.message_id or "", to, "done")

    def send_all(self, queue: str, messages: Iterable[Message]) -> int:
        """Send messages to a queue, all in one transaction, and return their number.

        Raises:
            NotSupportedError: The broker cannot send in a transaction.
        """
        count = 0
        with self._session(transacted=True) as session, session.transaction():
            for message in messages:
                copy_message(session, message, Queue(queue))
                count += 1
        return count

    def _change(
        self,
        queue: str,
        selector: str | None,
        planned: Callable[[DeadLetterRecord], Change],
        handle: Handle,
        rate: float | None = None,
        *,
        dry_run: bool = False,
    ) -> Changes:
        plan = list(map(planned, self.dead_letters(queue, selector)))
        return Changes(plan, iter(plan) if dry_run else self._carry_out(queue, plan, handle, rate))

    def _carry_out(self, queue: str, plan: Sequence[Change], handle: Handle, rate: float | None) -> Iterator[Change]:
        with self._session(transacted=True) as session:
            yield from paced(carry_out(session, queue, plan, handle), rate)

    def _copy(self, found: Sequence[Message], plan: Sequence[Change], to: Destination) -> Iterator[Change]:
        with self._session() as session:
            for message, planned in zip(found, plan, strict=True):
                yield replace(planned, outcome="done", expired=copy_message(session, message, to))

    def _browse(self, connection: Connection, session: Session, queue: str, selector: str | None) -> Iterator[Message]:
        """Yield the messages that can be decoded. If the selector has an id, yield only messages with this id."""
        if self._must_exist:  # before a browser exists: for it Artemis and Broker-J create a missing queue
            _check_exists(connection, Queue(queue), selector)
        messages = iter(session.create_browser(Queue(queue), selector or None))
        by_id = [name for name in ("JMSMessageID", "JMSCorrelationID") if name in (selector or "")]
        wanted = Selector.parse(selector) if selector and by_id else None
        while True:
            try:
                message = next(messages)
                DeadLetterRecord.of(message)  # decodes the headers
            except StopIteration:
                return
            except MessageFormatError as error:
                logger.warning("A message in the queue %s is left out: %s", queue, error)
            else:
                if wanted is None or wanted.matches(message):  # brokers compare AMQP ids without their types
                    yield message

    @contextmanager
    def _session(self, *, transacted: bool = False) -> Generator[Session]:
        with self._connected(transacted=transacted) as (_, session):
            yield session

    @contextmanager
    def _connected(self, *, transacted: bool = False) -> Generator[tuple[Connection, Session]]:
        with self._factory.create_connection() as connection:
            if transacted and not connection.capabilities.atomic:
                raise NotSupportedError(
                    "This broker cannot send and acknowledge in one transaction, so that a message could be lost or "
                    "duplicated. Connect with another protocol of the broker (jmsjca capabilities shows what it has)."
                )
            with connection.create_session(transacted=transacted) as session:
                yield connection, session


def _bounds_of(page: int, page_size: int) -> tuple[int, int]:
    """Return the index of the first item of a page, and the index after its last item.

    Raises:
        InvalidArgumentError: The page or its size is below 1, or too large.
    """
    if page < 1 or page_size < 1:
        raise InvalidArgumentError(f"page={page} and page_size={page_size} must be 1 or more.")
    if page * page_size > sys.maxsize:
        raise InvalidArgumentError(f"page={page} and page_size={page_size} are too large: no queue has so many.")
    return (page - 1) * page_size, page * page_size


def _check_exists(connection: Connection, queue: Queue, selector: str | None) -> None:
    """Raise an error if the broker does not list a queue. Without `lists_destinations` every queue may exist.

    Raises:
        InvalidDestinationError: The queue does not exist.
        InvalidSelectorError: The queue does not exist and the selector is invalid, as for an existing queue.
    """
    admin = connection.admin if connection.capabilities.lists_destinations else None
    if admin is None or _OF_ARTEMIS in queue.name:
        return
    try:
        found = admin.destinations()
    except JMSSecurityError:  # the user may browse, but not list
        return
    if queue not in found:
        if selector:
            Selector.parse(selector)
        near = get_close_matches(queue.name[:_MAX_COMPARED], (each.name for each in found if each.kind == "queue"), 1)
        remark = f"did you mean {near[0]!r:.100}? " if near else ""
        raise InvalidDestinationError(
            f"The broker has no queue {queue.name!r:.100} ({remark}jmsjca queues lists the queues)."
        )


def _order(record: DeadLetterRecord) -> tuple[str, str, float]:
    moved = record.moved.timestamp() if record.moved else 0.0
    return str(record.origin or ""), record.reason or "", moved


def _known_origin(record: DeadLetterRecord) -> Destination:
    if record.origin is None:
        raise InvalidDestinationError(
            f"The message {record.message_id} has no record of its origin: name the destination to replay it to, or "
            "leave it out with a selector. Nothing was changed."
        )
    return record.origin


def _planned(record: DeadLetterRecord, target: Destination | None) -> Change:
    return Change(record.message_id or "", target, "planned", record.replays)
