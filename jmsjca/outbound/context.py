"""The simplified API: a connection and a session in one."""

from typing import Self, Unpack

from jmsjca import spi
from jmsjca.config import AcknowledgeMode
from jmsjca.destinations import Destination, Subscription
from jmsjca.outbound.connection import Connection, ConnectionMetaData, ExceptionListener
from jmsjca.outbound.connection_state import ConnectionContext
from jmsjca.outbound.consumer import MessageConsumer
from jmsjca.outbound.producer import JMSProducer, ProducerOptions
from jmsjca.outbound.session import BaseSession

__all__ = ["JMSContext"]


class JMSContext(BaseSession):
    """Made by `ConnectionFactory.create_context` (JMS 3.1, section 2.8); for one thread at a time (section 6.2.6).

    Its consumers are those of the classic API: a `MessageConsumer` is what Java calls a JMSConsumer. The connection is
    started with the first consumer, and closed with the last of the contexts that share it.

    Args:
        context: What the connection gives.
        connection: The connection, used by contexts alone.
        transacted: True if what it receives and sends is committed together.
        session_mode: How receipt is acknowledged otherwise.

    Attributes:
        auto_start: True if making a consumer starts the connection (section 6.1.4).
    """

    def __init__(
        self, context: ConnectionContext, connection: Connection, *, transacted: bool, session_mode: AcknowledgeMode
    ) -> None:
        super().__init__(context, transacted=transacted, acknowledge_mode=session_mode)
        self._connection = connection
        self.auto_start = True

    @classmethod
    def on(cls, connection: Connection, session_mode: AcknowledgeMode, *, transacted: bool) -> Self:
        """Make a context on a connection that only contexts use. For the factory."""
        try:
            return connection.open_session(
                lambda context: cls(context, connection, transacted=transacted, session_mode=session_mode)
            )
        except BaseException:
            connection.close_if_idle()
            raise

    @property
    def session_mode(self) -> AcknowledgeMode:
        """How receipt is acknowledged, unless the context is transacted."""
        return self.acknowledge_mode

    @property
    def client_id(self) -> str | None:
        """What durable subscriptions belong to; given to the `ConnectionFactory`."""
        return self._connection.client_id

    @property
    def capabilities(self) -> spi.Capabilities:
        """What the broker can do."""
        return self._connection.capabilities

    @property
    def metadata(self) -> ConnectionMetaData:
        """What the connection is."""
        return self._connection.metadata

    @property
    def admin(self) -> spi.Admin | None:
        """What an operator can see and do; None if the broker offers nothing."""
        return self._connection.admin

    @property
    def exception_listener(self) -> ExceptionListener | None:
        """Called when the connection is lost; one for all contexts that share it. See `Connection`."""
        return self._connection.exception_listener

    @exception_listener.setter
    def exception_listener(self, listener: ExceptionListener | None) -> None:
        """Set it; None for nobody."""
        self._connection.exception_listener = listener

    def create_context(
        self, session_mode: AcknowledgeMode = AcknowledgeMode.AUTO, *, transacted: bool = False
    ) -> "JMSContext":
        """Make another context that shares the connection, for another thread. Any thread may call it.

        Args:
            session_mode: How receipt is acknowledged; ignored if transacted.
            transacted: True if what is received and sent is committed together.

        Raises:
            IllegalStateError: This context is closed.
        """
        self._check_open()
        return JMSContext.on(self._connection, session_mode, transacted=transacted)

    def create_producer(self, **options: Unpack[ProducerOptions]) -> JMSProducer:
        """Make a producer.

        Args:
            **options: Attributes of the `JMSProducer` to begin with.

        Raises:
            MessageFormatError: An option makes no sense.
        """
        with self._lock:
            return JMSProducer(self.send, self._lock, **options)

    def start(self) -> None:
        """Let the consumers of the connection receive. Making one does that, unless ``auto_start`` is False."""
        self._connection.start()

    def stop(self) -> None:
        """Let the consumers of the connection wait, as `Connection.stop`."""
        self._connection.stop()

    def close(self) -> None:
        """Close the session, and the connection if no other context uses it (section 6.1.8). Twice does nothing."""
        try:
            super().close()
        finally:
            self._connection.close_if_idle()

    def _consume(
        self, source: Destination | Subscription, selector: str | None, *, no_local: bool = False
    ) -> MessageConsumer:
        consumer = super()._consume(source, selector, no_local=no_local)
        if self.auto_start:
            self._connection.start()
        return consumer
