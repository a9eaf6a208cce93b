"""Temporary destinations, where the broker removes them with their connection."""

import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError

from jmsjca.destinations import Destination, DestinationKind, Subscription
from jmsjca.errors import ConnectionLostError, InvalidDestinationError
from jmsjca.providers.stomp.brokers.dialect import Dialect, destination_of
from jmsjca.providers.stomp.protocol.frames import Frame
from jmsjca.providers.stomp.protocol.session import STOMPSession

__all__ = ["TemporaryDestinations"]

_NAMES = {"destination": "/topic/jmsjca.temporaries"}
"""Where a connection tells another one, in passing, what its new destination is called."""


class TemporaryDestinations:
    """Those of one connection. Its broker makes one that a frame names, and tells its real name to others only.

    Args:
        session: The connection.
        dialect: What the broker calls things.
        open_side_session: Opens another connection.
    """

    def __init__(self, session: STOMPSession, dialect: Dialect, open_side_session: Callable[[], STOMPSession]) -> None:
        self._session = session
        self._dialect = dialect
        self._open_side_session = open_side_session
        self._own: set[Destination] = set()
        self._removed: set[Destination] = set()

    def create(self, kind: DestinationKind) -> Destination:
        """Make one.

        Raises:
            BrokerRefusedError: The broker refuses.
            ConnectionLostError: It does not tell the name.
        """
        mark = uuid.uuid4().hex
        told = self._ask(mark, {"correlation-id": mark, "reply-to": f"/temp-{kind}/{mark}"})
        made = self._dialect.read_address(told)
        if made is None or not made.temporary:
            raise ConnectionLostError(f"The broker gave a temporary {kind} no name, but {told[:100]!r}.")
        self._own.add(made)
        return made

    def remove(self, what: Destination) -> None:
        """Use it no more; the broker keeps it until the connection ends.

        Raises:
            InvalidDestinationError: This connection has none of that name.
        """
        self.check_own(what)
        self._own.remove(what)
        self._removed.add(what)

    def check_own(self, source: Destination | Subscription) -> None:
        """Refuse to consume from what is not this connection's, and durably from what does not last.

        Raises:
            InvalidDestinationError: It is one of these.
        """
        target = destination_of(source)
        if target.temporary and target not in self._own:
            raise InvalidDestinationError(f"{target} is gone, or another connection's: only its own consumes from it.")
        if target.temporary and isinstance(source, Subscription) and source.durable:
            raise InvalidDestinationError(f"{target} does not last, so it has no durable subscriptions.")

    def check_not_removed(self, to: Destination) -> None:
        """Refuse one that this connection has removed.

        Raises:
            InvalidDestinationError: It is one.
        """
        if to in self._removed:
            raise InvalidDestinationError(f"{to} was deleted.")

    def _ask(self, mark: str, headers: dict[str, str]) -> str:
        heard: Future[str] = Future()

        def hear(frames: Sequence[Frame]) -> None:
            """Find the message of this connection among those of others."""
            for frame in frames:
                if frame.headers.get("correlation-id") == mark and not heard.done():
                    heard.set_result(frame.headers.get("reply-to", ""))

        session = self._open_side_session()
        try:
            session.dispatcher.add_listener("names", hear)
            session.request("SUBSCRIBE", {"id": "names", "ack": "auto", **_NAMES})
            self._session.request("SEND", {**_NAMES, **headers})
            return heard.result(self._session.reply_timeout)
        except FutureTimeoutError as error:
            raise ConnectionLostError("The broker did not tell the name of a temporary destination.") from error
        finally:
            session.close(session.reply_timeout)
