"""All that is taken from stomp.py, which has no types, in one place.

Its connection life cycle is used: the receiver thread, its end, the notice of it. Its parser, writer and TLS are not:
they know no limits, escape no header names, write passwords into the log and may fall back to clear text.
"""

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

__all__ = ["Lifecycle", "agreed_heartbeat"]

# stomp.py asks the name service for this host's names when it is imported, which can take seconds and serves nothing.
_SCAN = "STOMP_SKIP_HOSTNAME_SCAN"
_before = os.environ.get(_SCAN)
os.environ[_SCAN] = "1"
try:
    from stomp.transport import BaseTransport  # type: ignore[import-untyped]
    from stomp.utils import calculate_heartbeats  # type: ignore[import-untyped]
finally:
    if _before is None:
        del os.environ[_SCAN]
    else:
        os.environ[_SCAN] = _before

if TYPE_CHECKING:

    class Lifecycle:
        """What of stomp.py's transport is used, as types see it."""

        running: bool
        io_thread: threading.Thread | None

        def __init__(self, *, auto_decode: bool) -> None: ...

        def override_threading(self, create_thread_fc: Callable[[Callable[[], None]], Any]) -> None:
            """Choose how the receiver thread is made."""

        def start(self) -> None:
            """Begin to receive."""

        def set_listener(self, name: str, listener: object) -> None:
            """Name who is told of the end."""

else:
    Lifecycle = BaseTransport


def agreed_heartbeat(theirs: str, ours: int) -> tuple[int, int]:
    """Work out the heart-beats from the header of both sides.

    Args:
        theirs: The header of the CONNECTED frame.
        ours: The milliseconds that this side offered, both ways.

    Returns:
        After how many milliseconds this side must write, and within how many the other one will; 0 for never.

    Raises:
        ValueError: The header is none.
    """
    sends, expects = theirs.replace(" ", "").split(",")
    if not all(part.isascii() and part.isdigit() for part in (sends, expects)):
        raise ValueError(theirs)
    write, read = calculate_heartbeats((sends.lstrip("0") or "0", expects.lstrip("0") or "0"), (ours, ours))
    return int(write), int(read)
