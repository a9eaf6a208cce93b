"""The AMQP sessions of a connection: one for each link."""

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from proton import Connection, Transport

from jmsjca.errors import JMSError, ResourceAllocationError
from jmsjca.providers.amqp.engine.events import Events, Owner
from jmsjca.providers.amqp.engine.proton_ffi import REMOTE_CLOSED, pointer_to

__all__ = ["Sessions"]

logger = logging.getLogger("jmsjca.amqp")

_PATIENCE = 0.25  # seconds until nobody waits any more for the answer to an end


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
        events: Events,
        *,
        free: Callable[[Any], None],
        later: Callable[[float, Callable[[], None]], None],
    ) -> None:
        self._connection = connection
        self._transport = transport
        self._events = events
        self._free = free
        self._later = later
        self._owners: set[Owner] = set()
        self._ending: dict[Owner, Any] = {}
        self._held: deque[Callable[[], None]] = deque()

    def adopt(self, owner: Owner, begin: Callable[[], None]) -> None:
        """Let somebody begin a session, now or soon; he is told when the connection is lost.

        Args:
            owner: Who.
            begin: Begins it.

        Raises:
            ResourceAllocationError: It would be one session more than the broker allows.
        """
        most = self._transport.remote_channel_max + 1
        if len(self._owners) >= most:  # who comes while others end is held until they have
            raise ResourceAllocationError(
                f"The broker allows {most} sessions on a connection, and each destination takes one:"
                " use fewer destinations in a unit, or several connections."
            )
        self._owners.add(owner)
        if self._ending:
            self._held.append(begin)
        else:
            begin()

    def begin(self, owner: Owner) -> Any:
        """Begin a session, and tell its owner what happens to it."""
        session = self._connection.session()
        self.watch(session, owner)
        session.open()
        return session

    def watch(self, end: Any, owner: Owner) -> None:
        """Tell this owner what happens to a session or a link."""
        self._events.owners[pointer_to(end)] = owner

    def release(self, owner: Owner, session: Any, link: Any) -> None:
        """Forget a link whose end and session are closed at our side."""
        self._owners.discard(owner)
        self._events.owners.pop(pointer_to(link), None)
        self._ending[owner] = session
        if session.state & REMOTE_CLOSED:
            self.ended(owner)
        else:
            self._later(_PATIENCE, partial(self.ended, owner))

    def ended(self, owner: Owner) -> None:
        """The broker has answered the end of a session that was released, or will not."""
        session = self._ending.pop(owner, None)
        if session is None:
            return
        self._events.owners.pop(pointer_to(session), None)
        self._free(session)
        while self._held and not self._ending:
            self._held.popleft()()

    def lose(self, error: JMSError) -> None:
        """Tell all owners that the connection is lost, and let go of everything."""
        for owner in self._owners:
            try:
                owner.on_lost(error)
            except Exception:  # the others are to hear of it all the same
                logger.exception("What is told of the end of a connection was not understood.")
        self._owners.clear()
        self._ending.clear()
        self._held.clear()
        self._events.owners.clear()
