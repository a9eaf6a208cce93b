"""The AMQP sessions of a connection: one for each link."""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from proton import Connection, Transport

from jmsjca.errors import JMSError, ResourceAllocationError
from jmsjca.log_records import get_logger
from jmsjca.providers.amqp.engine.events import EndpointHandler, EventDispatcher
from jmsjca.providers.amqp.engine.proton_ffi import REMOTE_CLOSED, pointer_to

__all__ = ["Sessions"]

logger = get_logger("jmsjca.amqp")

_END_TIMEOUT = 0.25  # seconds to wait for the broker's answer to an end
_LINGER = 1.0  # seconds for the broker to forget a session that it has ended


class Sessions:
    """Begins and ends sessions. Engine thread only.

    No session begins while the end of another one is unanswered: it would get the same channel number, and RabbitMQ may
    answer the end after the begin, so that the new session seems to end. RabbitMQ occasionally does not answer an end
    at all; therefore the wait is short.

    RabbitMQ 4 loses a begin that arrives right after the end of a session with the same channel number. There a session
    is kept for the next link, and after the broker has ended one, its number stays in use for a while.

    Args:
        connection: Proton's connection.
        transport: Proton's transport.
        events: Dispatches the events of sessions and links to their handlers.
        free: Frees a session or link after its end is written.
        call_later: Runs a function after a number of seconds.

    Attributes:
        keeps: True to keep sessions for the next link.
    """

    def __init__(
        self,
        connection: Connection,
        transport: Transport,
        events: EventDispatcher,
        *,
        free: Callable[[Any], None],
        call_later: Callable[[float, Callable[[], None]], None],
    ) -> None:
        self._connection = connection
        self._transport = transport
        self._events = events
        self._free = free
        self._call_later = call_later
        self._handlers: set[EndpointHandler] = set()
        self._ending: dict[EndpointHandler, Any] = {}
        self._queued_begins: deque[Callable[[], None]] = deque()
        self._kept: list[Any] = []
        self.keeps = False

    def begin_or_queue(self, handler: EndpointHandler, begin: Callable[[], None]) -> None:
        """Begin a session, now or once the ends of other sessions are answered.

        Args:
            handler: Handler of its events, which is also notified when the connection is lost.
            begin: Begins the session.

        Raises:
            ResourceAllocationError: The broker does not allow one more session.
        """
        maximum = self._transport.remote_channel_max + 1
        if len(self._handlers) >= maximum:  # begins that wait for ends do not count
            raise ResourceAllocationError(
                f"The broker allows {maximum} sessions on a connection, and each destination takes one:"
                " use fewer destinations in a unit, or several connections."
            )
        self._handlers.add(handler)
        if self._ending:
            self._queued_begins.append(begin)
        else:
            begin()

    def begin(self, handler: EndpointHandler) -> Any:
        """Begin a session, or take one that was kept, and register the handler of its events."""
        while self._kept:
            session = self._kept.pop()
            if not session.state & REMOTE_CLOSED:
                self.register(session, handler)
                return session
            self._linger(session)
        session = self._connection.session()
        self.register(session, handler)
        session.open()
        return session

    def register(self, endpoint: Any, handler: EndpointHandler) -> None:
        """Register the handler of the events of a session or link."""
        self._events.handlers[pointer_to(endpoint)] = handler

    def unregister(self, endpoint: Any) -> None:
        """Forget the handler of a further link of a session."""
        self._events.handlers.pop(pointer_to(endpoint), None)

    def release(self, handler: EndpointHandler, session: Any, link: Any) -> None:
        """Forget a link that is closed on this side, and end its session."""
        self._handlers.discard(handler)
        self._events.handlers.pop(pointer_to(link), None)
        if self.keeps:
            self._keep(session, link)
            return
        session.close()
        self._ending[handler] = session
        if session.state & REMOTE_CLOSED:
            self.on_ended(handler)
        else:
            self._call_later(_END_TIMEOUT, partial(self.on_ended, handler))

    def _keep(self, session: Any, link: Any) -> None:
        """Store a session for reuse, unless the broker has ended it or has requeued deliveries of it."""
        self._events.handlers.pop(pointer_to(session), None)
        if session.state & REMOTE_CLOSED or link.unsettled:
            self._linger(session)
        else:
            self._free(link)
            self._kept.append(session)

    def _linger(self, session: Any) -> None:
        """End a session on this side after a while: until then no other session gets its number."""
        self._call_later(_LINGER, partial(self._end, session))

    def _end(self, session: Any) -> None:
        session.close()
        self._free(session)

    def on_ended(self, handler: EndpointHandler) -> None:
        """Free a released session: the broker has answered its end, or will not."""
        session = self._ending.pop(handler, None)
        if session is None:
            return
        self._events.handlers.pop(pointer_to(session), None)
        self._free(session)
        while self._queued_begins and not self._ending:
            self._queued_begins.popleft()()

    def on_connection_lost(self, error: JMSError) -> None:
        """Notify all handlers that the connection is lost, and forget all sessions."""
        for handler in self._handlers:
            try:
                handler.on_connection_lost(error)
            except Exception:  # the other handlers must still be notified
                logger.exception("A handler failed on the loss of its connection.")
        self._handlers.clear()
        self._ending.clear()
        self._kept.clear()
        self._queued_begins.clear()
        self._events.handlers.clear()
