"""A connection of a pool, as its borrower sees it, and the factory behind it."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self

from jmsjca import spi
from jmsjca.config.limits import AcknowledgeMode
from jmsjca.config.options import OutboundOptions
from jmsjca.destinations import Destination
from jmsjca.errors import ConnectionLostError, IllegalStateError, JMSError
from jmsjca.forking import Process
from jmsjca.log_records import get_logger
from jmsjca.messages.message import Message
from jmsjca.outbound.connection import Connection, ConnectionMetaData, ExceptionListener
from jmsjca.outbound.connection_state import Closeable
from jmsjca.outbound.producer import MessageProducer
from jmsjca.outbound.session import Session
from jmsjca.outbound.unit_of_work import Abortable, ConnectionAbort, aborts_if_interrupted

__all__ = ["PoolableFactory", "PooledConnection"]

logger = get_logger("jmsjca.outbound")


class PoolableFactory(Protocol):
    """A `ConnectionFactory`, as a pool uses it."""

    @property
    def client_id(self) -> str | None:
        """The client id of the connections."""
        ...

    @property
    def options(self) -> OutboundOptions:
        """The options of JMSJCA."""
        ...

    @property
    def idle_timeout(self) -> float:
        """Seconds without a successful use after which a connection is replaced."""
        ...

    def create_connection(self, user_name: str | None = None, password: str | None = None, /) -> Connection:
        """Open a connection."""
        ...


class PooledConnection(Abortable, Closeable):
    """A connection that returns to its pool when it is closed. `ConnectionPool.connection` lends it.

    Args:
        connection: The connection to the broker.
        key: The user name and the password that it was opened with.
        take_back: Called when it is returned.
        origin: The generation of the pool, and the time at which it was opened.

    Attributes:
        connection: The connection to the broker.
        key: The user name and the password that it was opened with.
        origin: The generation of the pool, and the time at which it was opened.
        borrowed_at: When it was borrowed, on the monotonic clock.
        last_success: When it was last opened, or returned without a failure.
    """

    __slots__ = (
        "_abort",
        "_clean_up_failed",
        "_closed",
        "_for_single_sends",
        "_forks",
        "_state",
        "_take_back",
        "borrowed_at",
        "connection",
        "key",
        "last_success",
        "origin",
    )

    def __init__(
        self,
        connection: Connection,
        key: tuple[str | None, str | None],
        take_back: "Callable[[PooledConnection], None]",
        origin: tuple[int, float],
    ) -> None:
        self.connection = connection
        self.key = key
        self.origin = origin
        self.borrowed_at = self.last_success = origin[1]
        self._take_back = take_back
        self._state = connection._state  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        self._abort = ConnectionAbort(self._evict)
        self._clean_up_failed = False
        self._forks = Process.forks
        self._closed = True
        # Threads that share the connection have a session each.
        self._for_single_sends: list[tuple[MessageProducer, Callable[[], None] | None]] = []

    def borrow(self, now: float) -> Self:
        """Mark the connection as borrowed."""
        self.borrowed_at = now
        self._closed = False
        return self

    @property
    def failed(self) -> bool:
        """True after the connection was lost, or an attempt to clean it up failed."""
        return self._clean_up_failed or self._state.failure is not None

    def mark_failed(self) -> None:
        """Have the pool replace the connection: a call on it has raised a `ConnectionLostError`.

        The provider may not report that: there is no network to lose between here and an embedded broker.
        """
        self._clean_up_failed = True

    @property
    def client_id(self) -> None:
        """None: a connection with a client id is not pooled."""

    @property
    def capabilities(self) -> spi.Capabilities:
        """The capabilities of the broker."""
        return self.connection.capabilities

    @property
    def metadata(self) -> ConnectionMetaData:
        """Protocol, versions and properties of the connection."""
        return self.connection.metadata

    @property
    def admin(self) -> spi.Admin | None:
        """Administration of the broker; None if the broker offers none."""
        self._check_borrowed()
        return self.connection.admin

    @property
    def exception_listener(self) -> ExceptionListener | None:
        """As `Connection.exception_listener`; it is removed when the connection is returned."""
        return self.connection.exception_listener

    @exception_listener.setter
    def exception_listener(self, listener: ExceptionListener | None) -> None:
        """Set or remove the exception listener."""
        self._check_borrowed()
        self.connection.exception_listener = listener

    def start(self) -> None:
        """Start the delivery of messages to consumers. Idempotent."""
        self._check_borrowed()
        self.connection.start()

    def stop(self) -> None:
        """Pause the delivery of messages to consumers. Idempotent."""
        self._check_borrowed()
        self.connection.stop()

    def create_session(
        self, transacted: bool = False, acknowledge_mode: AcknowledgeMode | str = AcknowledgeMode.AUTO
    ) -> Session:
        """Create a session, which is closed when the connection is returned. The broker is not asked for it.

        Args:
            transacted: As for `Connection.create_session`.
            acknowledge_mode: As for `Connection.create_session`.

        Raises:
            IllegalStateError: The connection is returned.
            JMSError: As `Connection.create_session`.
        """
        self._check_borrowed()
        return self.connection.create_session(transacted, acknowledge_mode)

    @aborts_if_interrupted
    def close(self) -> None:
        """Return the connection to its pool. Idempotent.

        Its consumers, and all temporary destinations that it created, are removed; open transactions are rolled back.
        Under a transaction manager, it returns when the transactions that it has joined are over. Until then another
        borrower in the same transaction gets it.

        Raises:
            IllegalStateError: A completion listener or message listener of one of the sessions calls it.
        """
        if self._closed or self._forks != Process.forks:
            return  # a forked child: the connection belongs to the parent
        untouched = self.connection._is_untouched  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # not in the API
        if not untouched:
            self.connection._check_close_allowed()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        self._closed = True
        if untouched:
            self._take_back(self)
        else:
            self._clean_up(self._close_sessions)
            self.connection._keep((self._take_back, self.key), self, self._return)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def send(self, message: Message, to: Destination, options: Mapping[str, Any]) -> None:
        """Send one message at once, in a session that the connection keeps for the next single send.

        Args:
            message: The message.
            to: The destination.
            options: The options of `MessageProducer.send`.

        Raises:
            JMSError: As `MessageProducer.send`.
        """
        try:
            producer, commit = self._for_single_sends.pop()
        except IndexError:
            session = self.connection._session_for_single_sends()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            producer = session.create_producer()
            commit = session.commit if session.transacted else None  # whatever was asked for: JMSJCA.IgnoreTx
        try:
            producer.send(message, to, **options)
            if commit is not None:
                commit()
        except ConnectionLostError:
            self.mark_failed()
            raise
        self._for_single_sends.append((producer, commit))  # not after an error

    def _evict(self, error: BaseException) -> None:
        """Abort the connection, and free its place in the pool."""
        self._closed = self._clean_up_failed = True
        try:
            self.connection._abort(error)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        finally:
            self._take_back(self)

    def end(self) -> None:
        """Close the connection to the broker."""
        self.connection.close()

    def _return(self) -> None:
        try:
            if not self._clean_up_failed:
                self._clean_up(self.connection._delete_temporaries)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        finally:
            self._take_back(self)

    def _close_sessions(self) -> None:
        self.connection.exception_listener = None
        self.connection._pause()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # not in the API
        self.connection._close_sessions()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def _clean_up(self, act: Callable[[], None]) -> None:
        self._clean_up_failed = True  # until it has succeeded: an interruption leaves it so
        try:
            act()
            self._clean_up_failed = False
        except JMSError as error:
            logger.info("A pooled connection is closed, because it could not be cleaned up: %s", error)

    def _check_borrowed(self) -> None:
        if self._closed:
            raise IllegalStateError("The connection has been returned to its pool: borrow another one.")

    def __enter__(self) -> Self:
        self.start()
        return self
