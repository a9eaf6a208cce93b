"""The AMQP sessions of a connection: one for each link."""

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from proton import Connection, Transport

from jmsjca.errors import JMSError, ResourceAllocationError
from jmsjca.providers.amqp.engine.events import EndpointHandler, EventDispatcher
from jmsjca.providers.amqp.engine.proton_ffi import REMOTE_CLOSED, pointer_to

__all__ = ["Sessions"]

logger = logging.getLogger("jmsjca.amqp")

_END_TIMEOUT = 0.25  # seconds until nobody waits any more for the answer to an end


class Sessions:
    """Everything happens on the engine's thread.

    None begins while the end of another one is not answered: it would have the same number, and RabbitMQ may answer the
    end behind the begin, so that the new session seems to end. But now and then RabbitMQ does not answer at all; who
    waits does so for a moment.

    Args:
        connection: Proton's connection.
        transport: Proton's transport.
        events: Tells the owners of sessions and links what happens to them.
        free: Lets go of a session when its end is written.
        later: Does something after so many seconds.
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

    def begin_or_queue(self, owner: EndpointHandler, begin: Callable[[], None]) -> None:
        """Let somebody begin a session, now or soon; he is told when the connection is lost.

        Args:
            owner: Who.
            begin: Begins it.

        Raises:
            ResourceAllocationError: It would be one session more than the broker allows.
        """
        most = self._transport.remote_channel_max + 1
        if len(self._handlers) >= most:  # who comes while others end is held until they have
            raise ResourceAllocationError(
                f"The broker allows {most} sessions on a connection, and each destination takes one:"
                " use fewer destinations in a unit, or several connections."
            )
        self._handlers.add(owner)
        if self._ending:
            self._queued_begins.append(begin)
        else:
            begin()

    def begin(self, owner: EndpointHandler) -> Any:
        """Begin a session, and tell its owner what happens to it."""
        session = self._connection.session()
        self.register(session, owner)
        session.open()
        return session

    def register(self, end: Any, owner: EndpointHandler) -> None:
        """Tell this owner what happens to a session or a link."""
        self._events.handlers[pointer_to(end)] = owner

    def release(self, owner: EndpointHandler, session: Any, link: Any) -> None:
        """Forget a link whose end and session are closed at our side."""
        self._handlers.discard(owner)
        self._events.handlers.pop(pointer_to(link), None)
        self._ending[owner] = session
        if session.state & REMOTE_CLOSED:
            self.on_ended(owner)
        else:
            self._call_later(_END_TIMEOUT, partial(self.on_ended, owner))

    def on_ended(self, owner: EndpointHandler) -> None:
        """The broker has answered the end of a session that was released, or will not."""
        session = self._ending.pop(owner, None)
        if session is None:
            return
        self._events.handlers.pop(pointer_to(session), None)
        self._free(session)
        while self._queued_begins and not self._ending:
            self._queued_begins.popleft()()

    def on_connection_lost(self, error: JMSError) -> None:
        """Tell all owners that the connection is lost, and let go of everything."""
        for owner in self._handlers:
            try:
                owner.on_connection_lost(error)
            except Exception:  # the others are to hear of it all the same
                logger.exception("What is told of the end of a connection was not understood.")
        self._handlers.clear()
        self._ending.clear()
        self._queued_begins.clear()
        self._events.handlers.clear()
