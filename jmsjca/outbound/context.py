"""The simplified API: a connection and a session in one object."""

from typing import Unpack

from jmsjca import spi
from jmsjca.arguments import FLAG
from jmsjca.config.limits import AcknowledgeMode
from jmsjca.destinations import Destination, Subscription
from jmsjca.outbound.connection import ConnectionMetaData, ExceptionListener, SharedConnection
from jmsjca.outbound.connection_state import ConnectionContext
from jmsjca.outbound.consumer import MessageConsumer
from jmsjca.outbound.producer import JMSProducer, ProducerOptions
from jmsjca.outbound.session import BaseSession, checked_acknowledge_mode
from jmsjca.outbound.unit_of_work import aborts_if_interrupted

__all__ = ["JMSContext", "create_context"]


class JMSContext(BaseSession):
    """A connection and a session in one object (JMS 3.1, section 2.8). For one thread at a time (section 6.2.6).

    `ConnectionFactory.create_context` creates it. The first consumer starts the connection. The last of the contexts
    that share the connection closes it. Consumers are `MessageConsumer` objects, as in the classic API; they correspond
    to Java's JMSConsumer.

    Args:
        context: The resources of the connection.
        connection: The connection, shared by contexts only.
        transacted: True to commit all receipts and sends together.
        session_mode: The acknowledgement of receipts; ignored if transacted.
    """

    def __init__(
        self,
        context: ConnectionContext,
        connection: SharedConnection,
        *,
        transacted: bool,
        session_mode: AcknowledgeMode,
    ) -> None:
        super().__init__(context, transacted=transacted, acknowledge_mode=session_mode)
        self._connection = connection
        self._auto_start = True

    @property
    def auto_start(self) -> bool:
        """True, the default, if the creation of a consumer starts the connection (section 6.1.4)."""
        self._check_open()
        return self._auto_start

    @auto_start.setter
    def auto_start(self, value: bool) -> None:
        """Set whether the creation of a consumer starts the connection."""
        self._check_open()
        self._auto_start = FLAG("auto_start", value)

    @property
    def session_mode(self) -> AcknowledgeMode:
        """The acknowledgement of receipts, unless the context is transacted."""
        return self.acknowledge_mode

    @property
    def client_id(self) -> str | None:
        """The client id, which owns durable subscriptions; set in the `ConnectionFactory`."""
        self._check_open()
        return self._connection.client_id

    @property
    def capabilities(self) -> spi.Capabilities:
        """The capabilities of the broker."""
        self._check_open()
        return self._connection.capabilities

    @property
    def metadata(self) -> ConnectionMetaData:
        """Protocol, versions and properties of the connection."""
        self._check_open()
        return self._connection.metadata

    @property
    def admin(self) -> spi.Admin | None:
        """Administration of the broker; None if the broker offers none."""
        self._check_open()
        return self._connection.admin

    @property
    def exception_listener(self) -> ExceptionListener | None:
        """Called when the connection is lost; the contexts that share the connection share it. See `Connection`."""
        self._check_open()
        return self._connection.exception_listener

    @exception_listener.setter
    def exception_listener(self, listener: ExceptionListener | None) -> None:
        """Set or remove the exception listener."""
        self._check_open()
        self._connection.exception_listener = listener

    def create_context(
        self, session_mode: AcknowledgeMode | str = AcknowledgeMode.AUTO, *, transacted: bool = False
    ) -> "JMSContext":
        """Create another context that shares the connection, for another thread. Any thread may call it.

        Args:
            session_mode: The acknowledgement of receipts, an `AcknowledgeMode` or its name; ignored if transacted.
            transacted: True to commit all receipts and sends together.

        Raises:
            IllegalStateError: This context is closed.
            InvalidArgumentError: There is no such mode, or ``transacted`` is neither True nor False.
        """
        self._check_open()
        mode = checked_acknowledge_mode("session_mode", session_mode, transacted)
        return create_context(self._connection, mode, transacted=transacted)

    @aborts_if_interrupted
    def create_producer(self, **options: Unpack[ProducerOptions]) -> JMSProducer:
        """Create a producer.

        Args:
            **options: Initial values of the attributes of the `JMSProducer`.

        Raises:
            MessageFormatError: An option is invalid.
            InvalidArgumentError: There is no such option, or its value has a wrong type.
        """
        with self._lock:
            return JMSProducer(self._send, self._lock, self._asynchronous, self._context.resolve, **options)

    def start(self) -> None:
        """Start the delivery of messages to all consumers of the connection. ``auto_start`` makes it superfluous."""
        self._check_open()
        self._connection.start()

    def stop(self) -> None:
        """Pause the delivery of messages to all consumers of the connection, as `Connection.stop`."""
        self._check_open()
        self._connection.stop()

    @aborts_if_interrupted
    def close(self) -> None:
        """Close the context, and the connection if no other context uses it (section 6.1.8). Idempotent."""
        try:
            super().close()
        finally:
            self._connection.close_if_idle()

    def _consume(
        self, source: Destination | Subscription, selector: str | None, *, no_local: bool = False
    ) -> MessageConsumer:
        consumer = super()._consume(source, selector, no_local=no_local)
        if self._auto_start:
            self._connection.start()
        return consumer


def create_context(connection: SharedConnection, session_mode: AcknowledgeMode, *, transacted: bool) -> JMSContext:
    """Return a new context on a connection. Closes the connection if that fails and no other context uses it.

    Args:
        connection: The connection, shared by contexts only.
        session_mode: The acknowledgement of receipts; ignored if transacted.
        transacted: True to commit all receipts and sends together.
    """
    created: JMSContext | None = None
    try:
        created = connection.open_session(
            lambda context: JMSContext(context, connection, transacted=transacted, session_mode=session_mode)
        )
        return created
    finally:
        if created is None:
            connection.close_if_idle()
