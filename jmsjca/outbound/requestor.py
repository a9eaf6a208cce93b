"""Request and reply: sends a message and waits for the answer to it."""

import itertools
import uuid
from contextlib import suppress
from time import monotonic

from jmsjca.config import AcknowledgeMode
from jmsjca.destinations import Destination, check_destination
from jmsjca.errors import ConnectionLostError, IllegalStateError, InvalidDestinationError, MessageFormatError
from jmsjca.messages import Message
from jmsjca.outbound.connection_state import Closeable
from jmsjca.outbound.producer import MessageProducer
from jmsjca.outbound.session import BaseSession

__all__ = ["Requestor"]


class Requestor(Closeable):
    """Sends requests and waits for their replies (JMS 3.1, sections 2.16, 4.1.7 and 4.2.10).

    Replies come to a temporary queue of its own. Whoever answers sends to the request's ``reply_to``, with the
    request's ``message_id`` or ``correlation_id`` as the reply's ``correlation_id``. Anything else that comes there is
    dropped: above all the reply to a request that is not waited for any more.

    Args:
        session: A session or context that acknowledges by itself (AUTO or DUPS_OK); its connection must be started.
        destination: Where requests go: a queue, or a topic (the first reply counts).

    Attributes:
        producer: What sends the requests; its attributes, as ``time_to_live``, are those of the requests.
        replies: The temporary queue.

    Raises:
        IllegalStateError: The session is transacted, or acknowledges only when told to.
        InvalidDestinationError: It is no destination.
        NotSupportedError: The broker has no temporary destinations.
    """

    def __init__(self, session: BaseSession, destination: Destination) -> None:
        check_destination(destination)
        if session.transacted or session.acknowledge_mode not in (AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK):
            raise IllegalStateError(
                "A Requestor needs a session that sends at once and acknowledges by itself: one that is not "
                "transacted, with AcknowledgeMode.AUTO or DUPS_OK."
            )
        self._prefix = f"request-{uuid.uuid4().hex}-"
        self._numbers = itertools.count(1)
        self._session = session
        self.producer = MessageProducer(session.send, session.lock, destination)
        self._begin()

    def request(self, message: Message, timeout: float | None = None) -> Message | None:
        """Send a request and wait for its reply.

        Its ``reply_to`` is set, and its ``correlation_id`` unless it has one; one of yours must differ from request to
        request.

        Args:
            message: The request; it may be sent again afterwards.
            timeout: Seconds to wait for the reply; None waits for ever.

        Returns:
            The reply; None if none came in time.

        Raises:
            MessageFormatError: What came cannot be decoded, so nobody can tell whose reply it is. The next request has
                another queue for its replies.
        """
        message.reply_to = self.replies
        if message.correlation_id is None or message.correlation_id.startswith(self._prefix):
            message.correlation_id = f"{self._prefix}{next(self._numbers)}"
        self.producer.send(message)
        ids = {message.message_id, message.correlation_id} - {None}
        deadline = None if timeout is None else monotonic() + timeout
        while (reply := self._receive(_left(deadline))) is not None:
            if reply.correlation_id in ids:
                return reply
        return None

    def _receive(self, timeout: float | None) -> Message | None:
        try:
            return self._consumer.receive(timeout)
        except MessageFormatError:  # it would come again, before all others
            self.close()
            self._begin()
            raise

    def _begin(self) -> None:
        self.replies = self._session.create_temporary_queue()
        self._consumer = self._session.create_consumer(self.replies)

    def close(self) -> None:
        """Delete the queue of the replies. Closing twice does nothing."""
        self._consumer.close()
        with suppress(ConnectionLostError, InvalidDestinationError, IllegalStateError):  # it goes with its connection
            self.replies.delete()


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(deadline - monotonic(), 0)
