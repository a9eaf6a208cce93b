"""Temporary destinations, which the broker removes with their connection."""

import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError

from jmsjca.destinations import Destination, DestinationKind
from jmsjca.errors import ConnectionLostError
from jmsjca.providers.common.temporary_destinations import OwnedDestinations
from jmsjca.providers.stomp.brokers.dialect import Dialect
from jmsjca.providers.stomp.protocol.frames import Frame
from jmsjca.providers.stomp.protocol.session import STOMPSession

__all__ = ["TemporaryDestinations"]

_NAMES = {"destination": "/topic/jmsjca.temporaries"}
"""Topic over which a side session learns the name of a new temporary destination."""


class TemporaryDestinations(OwnedDestinations[None]):
    """The temporary destinations of a connection.

    The broker creates one when a frame names it, and shows its real name to other sessions only.

    Args:
        session: The session.
        dialect: The dialect of the broker.
        open_side_session: Opens another session.
    """

    def __init__(self, session: STOMPSession, dialect: Dialect, open_side_session: Callable[[], STOMPSession]) -> None:
        super().__init__()
        self._session = session
        self._dialect = dialect
        self._open_side_session = open_side_session

    def create(self, kind: DestinationKind) -> Destination:
        """Create a temporary destination.

        Raises:
            BrokerRefusedError: The broker refuses it.
            ConnectionLostError: The broker does not report its name.
        """
        mark = uuid.uuid4().hex
        told = self._ask(mark, {"correlation-id": mark, "reply-to": f"/temp-{kind}/{mark}"})
        made = self._dialect.read_address(told)
        if made is None or not made.temporary:
            raise ConnectionLostError(f"The broker gave a temporary {kind} no name, but {told[:100]!r}.")
        self._add(made, None)
        return made

    def remove(self, what: Destination) -> None:
        """Stop using a temporary destination; the broker keeps it until the connection ends.

        Raises:
            InvalidDestinationError: It does not belong to this connection.
        """
        self._discard(what)

    def _ask(self, mark: str, headers: dict[str, str]) -> str:
        heard: Future[str] = Future()

        def on_frames(frames: Sequence[Frame]) -> None:
            """Find the message of this connection among those of other connections."""
            for frame in frames:
                if frame.headers.get("correlation-id") == mark and not heard.done():
                    heard.set_result(frame.headers.get("reply-to", ""))

        session = self._open_side_session()
        try:
            session.dispatcher.add_listener("names", on_frames)
            session.request("SUBSCRIBE", {"id": "names", "ack": "auto", **_NAMES})
            self._session.request("SEND", {**_NAMES, **headers})
            return heard.result(self._session.reply_timeout)
        except FutureTimeoutError as error:
            raise ConnectionLostError("The broker did not report the name of a temporary destination.") from error
        finally:
            session.close(session.reply_timeout)
