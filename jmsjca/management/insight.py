"""Insight: reads and manages the destinations, messages and dead letters of one broker.

The command line presents it. Each change of a message is a transaction of its own: an interruption at any moment leaves
every message in one queue, exactly once.
"""

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from jmsjca import spi
from jmsjca.destinations import Destination, Queue
from jmsjca.errors import InvalidArgumentError, InvalidDestinationError, JMSError, MessageFormatError, NotSupportedError
from jmsjca.management.dead_letter import DeadLetterRecord, replay_copy
from jmsjca.messages.message import Message
from jmsjca.messages.properties import DUPLICATE_ID
from jmsjca.outbound.connection import Connection
from jmsjca.outbound.factory import ConnectionFactory
from jmsjca.outbound.session import Session
from jmsjca.redelivery.moved_copy import plain_copy

if TYPE_CHECKING:
    from jmsjca.adapter import ResourceAdapter

__all__ = ["Change", "DestinationInfo", "Insight", "selector_of_ids"]

logger = logging.getLogger("jmsjca.management")

_BATCH = 50  # ids in the selector of one consumer
_PATIENCE = 5.0  # seconds to wait for a message that was browsed; then another consumer has it

_Handle = Callable[[Session, Message, Destination | None], None]


@dataclass(frozen=True, slots=True)
class DestinationInfo:
    """A destination of the broker.

    Attributes:
        destination: The destination.
        depth: The numbers of messages of a queue; None for a topic.
    """

    destination: Destination
    depth: spi.Depth | None


@dataclass(frozen=True, slots=True)
class Change:
    """The result for one message of a replay, a move or a deletion.

    Attributes:
        message_id: The id of the message.
        target: The destination that the message is sent to; None if it is deleted.
        outcome: "done"; "planned" in a dry run; "gone" if another consumer had received the message; or "skipped" if it
            has no id to select it by.
        replays: The number of earlier replays of a dead letter.
    """

    message_id: str
    target: Destination | None
    outcome: str
    replays: int = 0


class Insight:
    """Reads and manages the destinations, messages and dead letters of one broker. Thread-safe.

    Each call opens a connection of its own and closes it.

    Args:
        source: A resource adapter, a connection factory, or a connection URL.
    """

    def __init__(self, source: "ResourceAdapter | ConnectionFactory | str") -> None:
        if isinstance(source, str):
            source = ConnectionFactory(source)
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
            admin = _admin(connection, "lists_destinations")
            found = sorted(admin.destinations(), key=lambda each: (each.kind, each.name))
            return [_info(admin, each) for each in found]

    def find_destinations(
        self, containing: str = "", *, page: int = 1, page_size: int = 50
    ) -> tuple[Sequence[DestinationInfo], int]:
        """Return one page of the destinations with a text in their names, and the number of all of them.

        Only the depths of the page are read, so the page is quick on a broker with very many queues.

        Args:
            containing: The text, in any case; an empty one finds all.
            page: The number of the page, from 1.
            page_size: The number of destinations of a page.

        Raises:
            InvalidArgumentError: The page or its size is below 1.
            NotSupportedError: The broker does not list its destinations.
        """
        _check_page(page, page_size)
        with self._factory.create_connection() as connection:
            admin = _admin(connection, "lists_destinations")
            found = [each for each in admin.destinations() if containing.lower() in each.name.lower()]
            found.sort(key=lambda each: (each.kind, each.name))
            shown = found[(page - 1) * page_size : page * page_size]
            return [_info(admin, each) for each in shown], len(found)

    def message(self, queue: str, message_id: str) -> Message:
        """Return a message that waits in a queue, without consuming it.

        Raises:
            InvalidArgumentError: The queue has no message with this id.
            NotSupportedError: The broker cannot browse, or has no selectors.
        """
        found = self.messages(queue, selector_of_ids([message_id]), page_size=1)
        if not found:
            raise InvalidArgumentError(
                f"The queue {queue!r:.100} has no message {message_id!r:.100}: a consumer may have received it."
            )
        return found[0]

    def messages(
        self, queue: str, selector: str | None = None, *, page: int = 1, page_size: int = 50
    ) -> Sequence[Message]:
        """Return one page of the messages that wait in a queue, without consuming them.

        Messages that cannot be decoded are left out, with a warning in the log.

        Args:
            queue: The name of the queue.
            selector: Only matching messages; None for all.
            page: The number of the page, from 1.
            page_size: The number of messages of a page.

        Raises:
            InvalidArgumentError: The page or its size is below 1.
            InvalidSelectorError: The selector is invalid.
            NotSupportedError: The broker cannot browse.
        """
        _check_page(page, page_size)
        with self._session() as session:
            return list(islice(_browse(session, queue, selector), (page - 1) * page_size, page * page_size))

    def dead_letters(self, queue: str, selector: str | None = None) -> Sequence[DeadLetterRecord]:
        """Return the records of the messages in a dead-letter queue, sorted by origin, reason and age (oldest first).

        Args:
            queue: The name of the dead-letter queue.
            selector: Only matching messages; None for all.

        Raises:
            InvalidSelectorError: The selector is invalid.
            NotSupportedError: The broker cannot browse.
        """
        with self._session() as session:
            return sorted(map(DeadLetterRecord.of, _browse(session, queue, selector)), key=_order)

    def replay(
        self, queue: str, selector: str | None = None, *, to: Destination | None = None, dry_run: bool = False
    ) -> Iterator[Change]:
        """Send dead letters back to where each came from. Each is sent and acknowledged in one transaction.

        A replayed message counts its replays in the property ``_JMSJCA_ReplayCount``. If it fails again, its record
        has that number. The messages are those that wait when the replay begins.

        Args:
            queue: The name of the dead-letter queue.
            selector: Only matching messages; None for all.
            to: The destination for all; None for the origin of each.
            dry_run: True to change nothing.

        Yields:
            The change of each message, after its commit.

        Raises:
            InvalidDestinationError: A message has no record of its origin, and ``to`` is None. Nothing is changed.
            NotSupportedError: The broker has no selectors, or cannot send and acknowledge atomically.
        """
        return self._change(queue, selector, lambda record: to or _known_origin(record), _replay, dry_run=dry_run)

    def move(
        self, queue: str, selector: str | None = None, *, to: Destination, dry_run: bool = False
    ) -> Iterator[Change]:
        """Move messages to another destination, each in one transaction.

        Args:
            queue: The name of the queue.
            selector: Only matching messages; None for all.
            to: The destination.
            dry_run: True to change nothing.

        Yields:
            The change of each message, after its commit.

        Raises:
            NotSupportedError: As `replay`.
        """
        return self._change(queue, selector, lambda _: to, _move, dry_run=dry_run)

    def delete(self, queue: str, selector: str | None = None, *, dry_run: bool = False) -> Iterator[Change]:
        """Delete messages, each in one transaction.

        Args:
            queue: The name of the queue.
            selector: Only matching messages; None for all.
            dry_run: True to change nothing.

        Yields:
            The change of each message, after its commit.

        Raises:
            NotSupportedError: As `replay`.
        """
        return self._change(queue, selector, lambda _: None, _delete, dry_run=dry_run)

    def _change(
        self,
        queue: str,
        selector: str | None,
        target: Callable[[DeadLetterRecord], Destination | None],
        handle: _Handle,
        *,
        dry_run: bool,
    ) -> Iterator[Change]:
        plan = [_planned(record, target(record)) for record in self.dead_letters(queue, selector)]
        if dry_run:
            yield from plan
            return
        yield from (replace(each, outcome="skipped") for each in plan if not each.message_id)
        changes = [each for each in plan if each.message_id]
        with self._session(transacted=True) as session:
            for start in range(0, len(changes), _BATCH):
                yield from _carry_out(session, queue, changes[start : start + _BATCH], handle)

    @contextmanager
    def _session(self, *, transacted: bool = False) -> Generator[Session]:
        with self._factory.create_connection() as connection:
            if transacted and not connection.capabilities.atomic:
                raise NotSupportedError(
                    "This broker cannot send and acknowledge in one transaction, so that a message could be lost or "
                    "duplicated. Connect with another protocol of the broker (jmsjca capabilities shows what it has)."
                )
            with connection.create_session(transacted=transacted) as session:
                yield session


def selector_of_ids(ids: Iterable[str]) -> str:
    """Return the selector of the messages with these ids, of which there is one at least."""
    quoted = ("'" + each.replace("'", "''") + "'" for each in ids)
    return f"JMSMessageID IN ({', '.join(quoted)})"


def _check_page(page: int, page_size: int) -> None:
    if page < 1 or page_size < 1:
        raise InvalidArgumentError(f"page={page} and page_size={page_size} must be 1 or more.")


def _info(admin: spi.Admin, found: Destination) -> DestinationInfo:
    return DestinationInfo(found, admin.depth(found) if found.kind == "queue" else None)


def _admin(connection: Connection, capability: str) -> spi.Admin:
    admin = connection.admin if getattr(connection.capabilities, capability) else None
    if admin is None:
        raise NotSupportedError(f"This broker lacks the capability {capability} over this protocol; name the queue.")
    return admin


def _browse(session: Session, queue: str, selector: str | None) -> Iterator[Message]:
    """Yield the messages that can be decoded."""
    messages = iter(session.create_browser(Queue(queue), selector or None))
    while True:
        try:
            message = next(messages)
            DeadLetterRecord.of(message)  # decodes the headers
        except StopIteration:
            return
        except MessageFormatError as error:
            logger.warning("A message in the queue %s is left out: %s", queue, error)
        else:
            yield message


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


def _carry_out(session: Session, queue: str, plan: Sequence[Change], handle: _Handle) -> Iterator[Change]:
    planned = {each.message_id: each for each in plan}
    left = [each.message_id for each in plan]  # one id may belong to several messages
    with session.create_consumer(Queue(queue), selector_of_ids(planned)) as consumer:
        while left and (message := consumer.receive(_PATIENCE)) is not None:
            change = planned[message.message_id or ""]
            _commit(session, message, change.target, handle)
            left = _without(left, change.message_id)
            yield replace(change, outcome="done")
    yield from (replace(planned[each], outcome="gone") for each in left)


def _commit(session: Session, message: Message, to: Destination | None, handle: _Handle) -> None:
    try:
        handle(session, message, to)
        session.commit()
    except BaseException:
        with suppress(JMSError):
            session.rollback()
        raise


def _without(ids: list[str], one: str) -> list[str]:
    """Return the ids without the first one that is equal to ``one``."""
    place = ids.index(one) if one in ids else len(ids)
    return ids[:place] + ids[place + 1 :]


def _replay(session: Session, message: Message, to: Destination | None) -> None:
    _send(session, replay_copy(message), to)


def _move(session: Session, message: Message, to: Destination | None) -> None:
    copy = plain_copy(message)
    copy.properties.pop(DUPLICATE_ID, None)  # a broker that has seen the id before would drop the message
    _send(session, copy, to)


def _delete(session: Session, message: Message, to: Destination | None) -> None:
    """Send nothing: the commit acknowledges the message."""
    del session, message, to


def _send(session: Session, copy: Message, to: Destination | None) -> None:
    session.create_producer(to).send(copy, delivery_mode=copy.delivery_mode, priority=copy.priority)
