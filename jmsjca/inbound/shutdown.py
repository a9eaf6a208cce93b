"""Stops activations: several together, on a signal, or when the process ends."""

import atexit
import signal
import socket
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Protocol
from weakref import WeakSet

__all__ = ["end_with_process", "serve", "stop_all"]

_GRACE = 10.0  # seconds that handlers at work have when the program ends and nobody stopped their endpoint


class Ending(Protocol):
    """Something that ends with the process."""

    def end_intake(self) -> object:
        """Begin to end, and return at once."""
        ...

    def stop(self, timeout: float | None = None) -> bool:
        """End, within so many seconds."""
        ...


_ending: WeakSet[Ending] = WeakSet()


def end_with_process(thing: Ending) -> None:
    """Stop something that nobody stopped, when the interpreter ends: before all that is there already ends."""
    _ending.add(thing)
    atexit.unregister(_end)  # what is registered last comes first: providers may have registered something meanwhile
    atexit.register(_end)


def _end() -> None:
    things, deadline = list(_ending), time.monotonic() + _GRACE
    for thing in things:
        thing.end_intake()
    for thing in things:
        thing.stop(max(deadline - time.monotonic(), 0.0))


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def stop_all(activations: Sequence[Ending], timeout: float | None) -> bool:
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
    with _heard(told.set, lambda: stop(0)):
        start()
        told.wait()
        return stop(timeout)


@contextmanager
def _heard(first: Callable[[], object], later: Callable[[], object]) -> Generator[None]:
    """Let a thread do something at the first signal, and something else at later ones.

    The main thread only waits meanwhile: a signal that comes just before it waits does not wake it.
    """
    ear, mouth = socket.socketpair()
    mouth.setblocking(False)
    before_fd = signal.set_wakeup_fd(mouth.fileno(), warn_on_full_buffer=False)
    before = {number: signal.signal(number, _nothing) for number in _SIGNALS}
    listener = threading.Thread(target=_listen, args=(ear, first, later), name="jmsjca signals", daemon=True)
    listener.start()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before_fd)
        mouth.close()
        listener.join()
        ear.close()


def _listen(ear: socket.socket, first: Callable[[], object], later: Callable[[], object]) -> None:
    act = first
    while said := ear.recv(1):
        if said[0] in _SIGNALS:
            act()
            act = later


def _nothing(number: int, frame: FrameType | None) -> None:
    del number, frame


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(deadline - time.monotonic(), 0.0)
