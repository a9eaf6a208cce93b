"""Calls a handler with what its parameters ask for."""

from collections.abc import Callable, Coroutine
from threading import Lock
from typing import TYPE_CHECKING, Any

from jmsjca.errors import IllegalStateError
from jmsjca.inbound.loops import HandlerLoop
from jmsjca.inbound.parameters import Given, Parameters

if TYPE_CHECKING:
    from jmsjca.inbound.coroutines import RunningCoroutine

__all__ = ["Handler"]


class Handler:
    """A user's function, called with what its parameters ask for; `Parameters` tells what that may be.

    The function may be ``async``: then it runs on the loop while the handler is open, and the thread that delivers
    waits for it. For any number of threads.

    Args:
        function: The user's function.
        loop: Where coroutines run; None for a loop of its own.

    Attributes:
        whole_batches: True if it takes all messages of a batch in one call.
        takes_end_of_batch: True if it is called once more at the end of a batch.

    Raises:
        ConfigurationError: It needs a parameter that nothing is known for, or it is no function that can be called.
    """

    def __init__(self, function: Callable[..., object], loop: HandlerLoop | None = None) -> None:
        self._function = function
        self._loop = loop or HandlerLoop()
        self._parameters = Parameters(function)
        self.whole_batches = self._parameters.whole_batches
        self.takes_end_of_batch = self._parameters.takes_end_of_batch
        self._lock = Lock()
        self._running: set[RunningCoroutine] = set()
        self._open = False

    def __call__(self, given: Given) -> object:
        """Call the function, and wait for the coroutine that an ``async`` one returns.

        Raises:
            IllegalStateError: The event loop is gone; the endpoint is being stopped then.
            CancelledError: The coroutine was cancelled.
            BaseException: What the function raised.
        """
        by_place, by_name = self._parameters.filled(given)
        result = self._function(*by_place, **by_name)
        if result is not None and isinstance(result, Coroutine):
            return self._wait_for(result, given)  # pyright: ignore[reportUnknownArgumentType]
        return result

    def is_blocked_by_caller(self) -> bool:
        """Tell whether coroutines would run on the event loop that calls this, so that it cannot wait for them."""
        return self._loop.is_here()

    def open(self) -> None:
        """Let coroutines run."""
        with self._lock:
            if not self._open:
                self._open = True
                self._loop.join()

    def close(self) -> None:
        """Cancel what still runs, and let no more coroutines run. Twice is as once."""
        with self._lock:
            running, was_open, self._open = list(self._running), self._open, False
        for coroutine in running:
            coroutine.cancel()
        if was_open:
            self._loop.leave()

    def _wait_for(self, coroutine: Coroutine[Any, Any, object], given: Given) -> object:
        running = self._begin(coroutine, given)
        try:
            return running.result()
        finally:
            with self._lock:
                self._running.discard(running)
            if running.cut_off:  # nothing that comes can be delivered any more
                given.message.stop_message_delivery("the event loop of its handler does not run any more")

    def _begin(self, coroutine: Coroutine[Any, Any, object], given: Given) -> "RunningCoroutine":
        from jmsjca.inbound.coroutines import RunningCoroutine  # noqa: PLC0415  # only async handlers need asyncio

        with self._lock:
            if not self._open:
                coroutine.close()
                raise IllegalStateError("The listener is down, so its handler cannot run.")
            running = RunningCoroutine(coroutine, self._loop.get(), given.began)
            self._running.add(running)
        return running
