"""The idle time-outs of AMQP (AMQP 1.0 section 2.4.5): the offered one, the broker's, and the heartbeats for both.

Each side announces how long it tolerates silence. Proton sends an empty frame after half of the broker's
idle time-out, and fails the transport when the broker is silent for longer than this side's.
"""

from proton import Transport

from jmsjca.errors import ConnectionLostError
from jmsjca.providers.amqp.engine.proton_ffi import pointer_to, tick

__all__ = ["Heartbeat", "idle_timeout_error", "offer_idle_timeout"]

_MIN_IDLE_TIMEOUT = 0.01  # seconds; half of a shorter time-out is close to 0, and the loop would only send heartbeats


class Heartbeat:
    """Sends heartbeats and detects a silent broker. Engine thread only.

    Args:
        transport: Proton's transport.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = pointer_to(transport)

    def run(self, now: float) -> float:
        """Send a heartbeat if one is due. Fail the transport if the broker has been silent for too long.

        Args:
            now: The time of the monotonic clock, in seconds.

        Returns:
            When to call again, on the same clock; 0 for never.
        """
        return tick(self._transport, int(now * 1000)) / 1000


def offer_idle_timeout(transport: Transport, heartbeat: float) -> None:
    """Set the idle time-out that this side announces, before the connection is opened.

    Args:
        transport: Proton's transport.
        heartbeat: Seconds between the heartbeats of either side; 0 for none. A broker that is silent for twice as long
            is considered dead.
    """
    if heartbeat:
        transport.idle_timeout = 2 * heartbeat


def idle_timeout_error(transport: Transport) -> ConnectionLostError | None:
    """Return an error if the broker's idle time-out is too short to be kept; None otherwise.

    Args:
        transport: Proton's transport, after the broker has opened the connection.
    """
    seconds = transport.remote_idle_timeout
    if 0 < seconds < _MIN_IDLE_TIMEOUT:
        return ConnectionLostError(
            f"The broker ends connections that are silent for {seconds * 1000:g} ms (its idle-time-out); at least"
            f" {_MIN_IDLE_TIMEOUT * 1000:g} ms are needed."
        )
    return None
