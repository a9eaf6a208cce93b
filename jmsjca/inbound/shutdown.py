"""Stops activations: several at the same time, on a signal, or at interpreter exit."""

import atexit
import signal
import socket
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import timedelta
from types import FrameType
from weakref import WeakSet

from jmsjca.arguments import TIMEOUT
from jmsjca.config.clock import Deadline
from jmsjca.errors import IllegalStateError
from jmsjca.inbound.activation_state import Account, ActivationView, StatusMonitor

__all__ = ["StopReport", "call_after_stop", "serve", "stop_all", "stop_at_exit"]

_GRACE = 10.0  # seconds for active handlers if the program exits without a stop


@dataclass(frozen=True, slots=True)
class StopReport:
    """The result of a stop. It is true if all handlers ended in time.

    The numbers count messages, from the beginning of the stop to its end. Messages that were only prefetched to this
    process, and that no listener had received, are not counted: the broker delivers them again.

    Attributes:
        ended: True if all handlers ended in time.
        finished: Messages of units that were committed or rolled back.
        returned: Received messages that were released because no handler had begun with them.
        in_doubt: Messages of units without an answer to their commit.
        abandoned: Messages that handlers were still processing at the deadline, or when the connection was lost. The
            broker redelivers them.
    """

    ended: bool
    finished: int = 0
    returned: int = 0
    in_doubt: int = 0
    abandoned: int = 0

    def __bool__(self) -> bool:
        return self.ended


_stoppable: WeakSet[ActivationView] = WeakSet()


def stop_at_exit(activation: ActivationView) -> None:
    """Stop an activation at interpreter exit, before its connections are closed, unless it is already stopped."""
    _stoppable.add(activation)
    # The function registered last is called first. Providers may have registered functions since the last call.
    atexit.unregister(_stop_all_at_exit)
    atexit.register(_stop_all_at_exit)


def _stop_all_at_exit() -> None:
    stop_all(list(_stoppable), _GRACE)


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def stop_all(activations: Sequence[ActivationView], timeout: float | None) -> StopReport:
    """Stop activations concurrently.

    Args:
        activations: The activations to stop.
        timeout: Seconds until their common deadline; None waits forever.

    Returns:
        The report, which is true if all handlers ended in time.
    """
    deadline, before = Deadline(timeout), _total(activations)
    for activation in activations:
        activation.stop_intake()
    results = [activation.stop(deadline.remaining()) for activation in activations]
    after = _total(activations)
    return StopReport(
        ended=all(results),
        finished=after.finished - before.finished,
        returned=after.returned - before.returned,
        in_doubt=after.in_doubt - before.in_doubt,
        abandoned=after.lost - before.lost + after.active,
    )


def call_after_stop(activations: Sequence[ActivationView], monitor: StatusMonitor, act: Callable[[], object]) -> None:
    """Call a function once no activation is stopping: now, or later on another thread.

    Args:
        activations: The activations, after `stop_all`, which does not wait if a handler calls it.
        monitor: Notified of each change of a status.
        act: The function.
    """

    def _has_stopped() -> bool:
        return all(each.status != "Disconnecting" for each in activations)

    def _wait_and_act() -> None:
        monitor.wait_for(_has_stopped, None)
        act()

    if _has_stopped():
        act()
    else:
        threading.Thread(target=_wait_and_act, name="jmsjca stop", daemon=True).start()


def _total(activations: Sequence[ActivationView]) -> Account:
    accounts = [astuple(each.account()) for each in activations]
    return Account(*map(sum, zip(*accounts, strict=True)))


def serve(
    start: Callable[[], None],
    stop: Callable[[float | None], StopReport],
    timeout: float | timedelta | None,
    monitor: StatusMonitor,
    has_failed: Callable[[], bool],
) -> StopReport:
    """Start, and stop on SIGINT or SIGTERM. A second signal ends the wait for handlers. Call it on the main thread.

    Args:
        start: Called first.
        stop: Called with ``timeout`` at the first signal, and with a timeout of 0 at each later one.
        timeout: Seconds from the first signal to the deadline; None waits forever.
        monitor: Notified of each change of a status.
        has_failed: Returns True if all listeners have failed. This stops like a signal.

    Returns:
        The result of ``stop``.

    Raises:
        IllegalStateError: The calling thread is not the main thread, which is the only one that can handle signals.
        InvalidArgumentError: The timeout is not a number of seconds, or is negative.
    """
    timeout = TIMEOUT("timeout", timeout)
    if threading.current_thread() is not threading.main_thread():
        raise IllegalStateError(
            f"run() handles signals, which only the main thread can; this is {threading.current_thread().name!r}. Call "
            "start() and stop() instead, or enter the adapter with 'with'."
        )
    stop_requested = threading.Event()

    def _request_stop() -> None:
        stop_requested.set()
        monitor.notify()

    with _signals_handled(_request_stop, lambda: stop(0)):
        start()
        monitor.wait_for(lambda: stop_requested.is_set() or has_failed(), None)
        return stop(timeout)


@contextmanager
def _signals_handled(first: Callable[[], object], later: Callable[[], object]) -> Generator[None]:
    """Call ``first`` at the first signal and ``later`` at each later one, on another thread.

    The main thread does nothing but wait: a signal that arrives just before its wait would not interrupt the wait.
    """
    read_end, write_end = socket.socketpair()
    write_end.setblocking(False)
    before_fd = signal.set_wakeup_fd(write_end.fileno(), warn_on_full_buffer=False)
    before = {number: signal.signal(number, _nothing) for number in _SIGNALS}
    listener = threading.Thread(target=_listen, args=(read_end, first, later), name="jmsjca signals", daemon=True)
    listener.start()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before_fd)
        write_end.close()
        listener.join()
        read_end.close()


def _listen(read_end: socket.socket, first: Callable[[], object], later: Callable[[], object]) -> None:
    act = first
    while data := read_end.recv(1):
        if data[0] in _SIGNALS:
            act()
            act = later


def _nothing(number: int, frame: FrameType | None) -> None:
    del number, frame
