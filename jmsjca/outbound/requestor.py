"""Request and reply: sends a message and waits for the reply to it."""

import itertools
import uuid
from contextlib import suppress
from datetime import timedelta

from jmsjca.arguments import TIMEOUT, Constraint, GuardedAttributes
from jmsjca.config.clock import Deadline
from jmsjca.config.limits import AcknowledgeMode
from jmsjca.destinations import Destination, TemporaryQueue, check_destination
from jmsjca.errors import ConnectionLostError, IllegalStateError, InvalidDestinationError, MessageFormatError
from jmsjca.messages.converters import Body, message_from_body
from jmsjca.messages.message import Message
from jmsjca.outbound.connection_state import Closeable
from jmsjca.outbound.producer import MessageProducer
from jmsjca.outbound.session import BaseSession

__all__ = ["Requestor"]


class Requestor(Closeable, GuardedAttributes):
    """Sends requests and waits for their replies (JMS 3.1, sections 2.16, 4.1.7 and 4.2.10).

    Replies arrive in a temporary queue of the requestor. The replier sends to the request's ``reply_to``, with the
    request's ``message_id`` or ``correlation_id`` as the reply's ``correlation_id``. Any other message that arrives
    there is discarded, for example a late reply to a request that has timed out.

    Args:
        session: A session or context that acknowledges automatically (AUTO or DUPS_OK); its connection must be started.
        destination: Destination of the requests: a queue, or a topic (the first reply is returned).

    Raises:
        IllegalStateError: The session is transacted, or does not acknowledge automatically; or, on the use of the
            requestor, it or its session is closed.
        ArgumentTypeError: The first argument is not a session.
        InvalidDestinationError: The value is not a destination.
        NotSupportedError: The broker has no temporary destinations.
    """

    def __init__(self, session: BaseSession, destination: Destination) -> None:
        _SESSION("session", session)
        check_destination(destination)
        if session.transacted or session.acknowledge_mode not in (AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK):
            raise IllegalStateError(
                "A Requestor needs a session that sends at once and acknowledges by itself: one that is not "
                "transacted, with AcknowledgeMode.AUTO or DUPS_OK."
            )
        self._prefix = f"request-{uuid.uuid4().hex}-"
        self._numbers = itertools.count(1)
        self._session = session
        self._producer = session._producer_for(destination)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # not in the API
        self._open_reply_queue()

    @property
    def producer(self) -> MessageProducer:
        """Producer of the requests; its attributes, such as ``time_to_live``, apply to all requests."""
        self._check_open()
        return self._producer

    @property
    def replies(self) -> TemporaryQueue:
        """The temporary queue of the replies."""
        self._check_open()
        return self._replies

    def request(self, message: Message | Body, timeout: float | timedelta | None = None) -> Message | None:
        """Send a request and wait for its reply.

        Sets the request's ``reply_to``, and its ``correlation_id`` unless the application has set one; the latter must
        differ from request to request.

        Args:
            message: The request; it may be sent again afterwards. Or the body of one, as in `MessageProducer.send`.
            timeout: Seconds to wait for the reply; None waits forever.

        Returns:
            The reply; None if none arrived in time.

        Raises:
            IllegalStateError: The requestor or its session is closed.
            InvalidArgumentError: The timeout is not a number of seconds, or is negative. No request was sent.
            MessageFormatError: No message can hold the body; or a received message cannot be decoded, so that its
                request is unknown. The next request uses a new reply queue.
        """
        self._check_open()
        timeout = TIMEOUT("timeout", timeout)
        if not isinstance(message, Message):
            message = message_from_body(message)
        message.reply_to = self._replies
        if message.correlation_id is None or message.correlation_id.startswith(self._prefix):
            message.correlation_id = f"{self._prefix}{next(self._numbers)}"
        self._producer.send(message)
        ids = {message.message_id, message.correlation_id} - {None}
        deadline = Deadline(timeout)
        while (reply := self._receive(deadline.remaining())) is not None:
            if reply.correlation_id in ids:
                return reply
        return None

    def _receive(self, timeout: float | timedelta | None) -> Message | None:
        try:
            return self._consumer.receive(timeout)
        except MessageFormatError:  # it would be redelivered, before all others
            self._close_reply_queue()
            self._open_reply_queue()
            raise

    def _open_reply_queue(self) -> None:
        self._replies = self._session.create_temporary_queue()
        self._consumer = self._session.create_consumer(self._replies)

    def _close_reply_queue(self) -> None:
        self._consumer.close()
        with suppress(ConnectionLostError, InvalidDestinationError, IllegalStateError):  # already deleted
            self._replies.delete()

    def close(self) -> None:
        """Delete the reply queue. Idempotent."""
        self._producer.close()
        self._close_reply_queue()

    def _check_open(self) -> None:
        if self._producer.closed:
            raise IllegalStateError("The requestor is closed; create another one with Requestor(session, destination).")


_SESSION = Constraint[BaseSession]("a session, or a context; the destination comes second", BaseSession)
