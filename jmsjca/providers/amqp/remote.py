"""What the broker says of a connection as a whole: that it opens, what it is, and why it ends."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from proton import Connection, Event, Transport

from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.providers.amqp.conditions import connection_error, transport_error
from jmsjca.providers.amqp.constants import LOGGED_IN

__all__ = ["Remote"]

_LEAST_SILENCE = 0.01  # seconds; half of a shorter one is next to none, and heartbeats would be all that we do
_HASTE = "The broker ends connections that are silent for {:g} ms (its idle-time-out): nobody can keep that up."


class Remote:
    """Everything happens on the engine's thread.

    Args:
        connection: Proton's connection.
        transport: Proton's transport.
        give_up: Is told why the connection must be given up.

    Attributes:
        opened: Done when the broker has opened the connection.
        properties: What the broker tells of itself.
        closing: True when its end is what we want.
    """

    def __init__(self, connection: Connection, transport: Transport, give_up: Callable[[JMSError], None]) -> None:
        self._connection = connection
        self._transport = transport
        self._give_up = give_up
        self.opened: Future[None] = Future()
        self.properties: dict[Any, Any] = {}
        self.closing = False
        self._tried_out = False

    @property
    def matters(self) -> bool:
        """True if somebody is to hear of its end."""
        return not (self.closing or self._tried_out)

    def try_out(self, *, on: bool) -> None:
        """From here on nobody is to hear of its end, or somebody is again."""
        self._tried_out = on

    def handlers(self) -> Mapping[int, Callable[[], None]]:
        """What to do for the events of the connection, by their numbers."""
        return {
            Event.CONNECTION_REMOTE_OPEN.number: self._on_open,
            Event.CONNECTION_REMOTE_CLOSE.number: self._on_close,
            Event.TRANSPORT_ERROR.number: self._on_error,
        }

    def on_stranger(self) -> None:
        """Leave a broker that opens sessions or links of its own: nobody would ever close them."""
        self._give_up(ConnectionLostError("The broker opened a session or link of its own, which none should."))

    def end(self, error: JMSError) -> None:
        """Tell who waits for the opening that it does not come."""
        if not self.opened.done():
            self.opened.set_exception(error)

    def _on_open(self) -> None:
        if self._transport.sasl().outcome != LOGGED_IN:  # proton takes an open frame in the midst of the login
            self._give_up(ConnectionLostError("The broker opened the connection before it answered the login."))
            return
        if 0 < self._transport.remote_idle_timeout < _LEAST_SILENCE:
            self._give_up(ConnectionLostError(_HASTE.format(self._transport.remote_idle_timeout * 1000)))
            return
        properties: Any = self._connection.remote_properties  # whatever the broker sent for them
        self.properties = dict(properties) if hasattr(properties, "items") else {}
        failed = "amqp:connection-establishment-failed" in self.properties
        if not failed and not self.opened.done():  # else the reason follows
            self.opened.set_result(None)

    def _on_close(self) -> None:
        if not self.closing:
            self._give_up(connection_error(self._connection.remote_condition, self._connection.container))

    def _on_error(self) -> None:
        if not self.closing:
            self._give_up(transport_error(self._transport, self._connection.container))
