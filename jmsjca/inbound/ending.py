"""How several activations end together: all at once, or when the process is told to."""

import signal
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType

from jmsjca.inbound.activation import Activation

__all__ = ["serve", "stop_all"]


def stop_all(activations: Sequence[Activation], timeout: float | None) -> bool:
    """Stop activations side by side.

    Args:
        activations: Which.
        timeout: Seconds until the deadline that all of them have; None to wait for ever.

    Returns:
        True if all handlers ended in time.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    for activation in activations:
        activation.end_intake()
    results = [activation.stop(_left(deadline)) for activation in activations]
    return all(results)


def serve(start: Callable[[], None], stop: Callable[[float | None], bool], timeout: float | None) -> bool:
    """Start, and stop when SIGINT or SIGTERM comes; a second signal is the deadline. For the main thread.

    Args:
        start: What to do first.
        stop: What to do then; called again, with a timeout of 0, at the second signal.
        timeout: Seconds from the first signal to the deadline; None to wait for ever.

    Returns:
        What stop returned.
    """
    told = threading.Event()

    def tell(number: int, frame: FrameType | None) -> None:
        """Note the signal."""
        del number, frame
        if told.is_set():  # this thread waits in `stop`, which the other one brings to its end
            threading.Thread(target=stop, args=(0,), name="jmsjca stop", daemon=True).start()
        told.set()

    before = {number: signal.signal(number, tell) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        start()
        told.wait()
        return stop(timeout)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(deadline - time.monotonic(), 0.0)
