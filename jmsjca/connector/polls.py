"""Polled messages, and those that wait for their acknowledgement: open sessions by acknowledge id, with timeouts."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from threading import Event, Lock, Thread

from jmsjca.config.settings import SYSTEM_CLOCK, AcknowledgeMode
from jmsjca.errors import ConnectionLostError, JMSError, TransactionInDoubtError
from jmsjca.inbound.delay_queue import DelayQueue
from jmsjca.log_records import get_logger
from jmsjca.messages.message import Message
from jmsjca.messages.settlement import Outcome, Settlement, complete_settlement
from jmsjca.outbound.connection import Connection
from jmsjca.outbound.consumer import MessageConsumer
from jmsjca.outbound.session import Session

__all__ = [
    "HeldPoll",
    "HeldPolls",
    "close_settled",
    "commit_poll",
    "create_poll_session",
    "polled_messages",
    "waiting_messages",
]

logger = get_logger("jmsjca.connector")

_MAX_LATE = 1000  # consecutive messages; one alone may have a higher priority than others that waited
_MAX_UNDATED = 10_000  # messages without JMSTimestamp, of which nothing shows whether they waited


class HeldPoll:
    """The open session of a poll. Its messages are locked until it is settled.

    Args:
        connection: The connection of the poll, which is closed with it.
        session: The session, of `create_poll_session`.

    Attributes:
        settled: Set when the poll is settled.
    """

    def __init__(self, connection: Connection, session: Session) -> None:
        self._connection = connection
        self._session = session
        self.settled = Event()

    def settle(self, *, roll_back: bool) -> Settlement:
        """Commit or roll back, and close the connection.

        Args:
            roll_back: True returns the messages to the queue.

        Returns:
            The settlement, which has its outcome already.
        """
        self.settled.set()
        settlement = Settlement()
        complete_settlement(settlement, self._finish(roll_back=roll_back))
        return settlement

    def _finish(self, *, roll_back: bool) -> Outcome:
        try:
            if roll_back:
                if self._session.transacted:
                    self._session.rollback()
                return Outcome.ROLLED_BACK  # at the latest the end of the connection releases the messages
            commit_poll(self._session)
        except TransactionInDoubtError:
            return Outcome.IN_DOUBT
        except ConnectionLostError:
            return Outcome.LOST
        except JMSError:
            return Outcome.ROLLED_BACK
        finally:
            close_settled(self._connection)
        return Outcome.COMMITTED


def create_poll_session(connection: Connection) -> Session:
    """Return a session that keeps messages locked until `commit_poll`, also on a broker without transactions."""
    if connection.capabilities.atomic:
        return connection.create_session(transacted=True)
    return connection.create_session(acknowledge_mode=AcknowledgeMode.CLIENT)


def commit_poll(session: Session) -> None:
    """Remove the received messages from their queue.

    Raises:
        TransactionInDoubtError: They may have been removed.
        JMSError: The broker refuses, or cannot be reached.
    """
    if session.transacted:
        session.commit()
    else:
        session.acknowledge()


def close_settled(connection: Connection) -> None:
    """Close the connection of settled messages. An error changes nothing of that, so it is logged."""
    try:
        connection.close()
    except JMSError as error:
        logger.warning("The connection of a poll could not be closed: %s", error)


def polled_messages(consumer: MessageConsumer, limit: int, timeout: float | None) -> Iterator[Message]:
    """Yield the messages of one poll.

    Args:
        consumer: The consumer.
        limit: The maximum number; 0 for all that were waiting when the first one was received.
        timeout: Seconds to wait for the first message; None waits forever. Nothing waits for further messages.
    """
    messages = _received(consumer, timeout)
    return islice(messages, limit) if limit else waiting_messages(messages)


def _received(consumer: MessageConsumer, timeout: float | None) -> Iterator[Message]:
    message = consumer.receive(timeout=timeout)
    while message is not None:
        yield message
        message = consumer.receive(timeout=0)


def waiting_messages(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield messages until enough show that all those were read that were waiting: a queue may never be empty.

    Args:
        messages: The messages of a queue, as they are received or browsed.
    """
    began: datetime | None = None
    late = undated = 0
    for message in messages:
        yield message
        began = began or datetime.fromtimestamp(SYSTEM_CLOCK.now(), UTC)
        undated += message.timestamp is None
        late = late + 1 if message.timestamp is not None and message.timestamp > began else 0
        if late >= _MAX_LATE or undated >= _MAX_UNDATED:
            return


class HeldPolls:
    """The polls that are not acknowledged yet. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: dict[str, HeldPoll] = {}

    def hold(self, acknowledge_id: str, connection: Connection, session: Session, timeout: float | None) -> None:
        """Hold the messages of a session.

        Args:
            acknowledge_id: Their id.
            connection: The connection of the session.
            session: The session.
            timeout: Seconds after which the session is rolled back; None for never.
        """
        poll = HeldPoll(connection, session)
        with self._lock:
            self._held[acknowledge_id] = poll
        if timeout is not None:
            due = DelayQueue[str](SYSTEM_CLOCK)
            due.put(acknowledge_id, timeout)
            Thread(target=self._wait, args=(due, poll), name="jmsjca-held-poll", daemon=True).start()

    def take(self, acknowledge_id: str) -> HeldPoll | None:
        """Remove a poll, for the one caller who settles it; None if it is not held."""
        with self._lock:
            return self._held.pop(acknowledge_id, None)

    def close(self) -> None:
        """Roll back all polls."""
        for acknowledge_id in list(self._held):
            self._expire(acknowledge_id)

    def _wait(self, due: DelayQueue[str], poll: HeldPoll) -> None:
        """Roll a poll back when it is due, unless it is settled before; on a thread of its own."""
        while not poll.settled.wait(due.time_to_next(None)):
            for acknowledge_id in due.pop_due():
                self._expire(acknowledge_id)

    def _expire(self, acknowledge_id: str) -> None:
        poll = self.take(acknowledge_id)
        if poll is not None:
            poll.settle(roll_back=True)
