"""The event loop that the coroutines of handlers run on."""

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from jmsjca.inbound.process import forget_in_children

if TYPE_CHECKING:
    import asyncio

__all__ = ["HandlerLoop"]

_LONGEST_END = 1.0  # seconds for coroutines that do not let themselves be cancelled


class HandlerLoop:
    """One loop for all handlers of an adapter, so that they can share what is bound to a loop.

    It is the application's, where the adapter was entered with ``async with``; else one of its own, on a thread that
    exists from the first coroutine on until no endpoint is left that may have another one.
    """

    def __init__(self) -> None:
        self.forget()
        forget_in_children(self)

    def forget(self) -> None:
        """Begin anew, in a forked child, where no other thread is."""
        self._lock = threading.Lock()
        self._adopted: asyncio.AbstractEventLoop | None = None
        self._own: _OwnLoop | None = None
        self._members = 0

    def adopt(self, loop: "asyncio.AbstractEventLoop | None") -> None:
        """Let coroutines run on the application's loop from now on; None to let them run on our own again."""
        with self._lock:
            self._adopted = loop

    def is_here(self) -> bool:
        """Tell whether the caller is on that loop: as long as it blocks, no coroutine ends."""
        with self._lock:
            loop = self._adopted or (self._own.loop if self._own is not None else None)
        if loop is None:
            return False
        import asyncio  # noqa: PLC0415  # whoever has a loop has it

        try:
            return asyncio.get_running_loop() is loop
        except RuntimeError:  # none runs on this thread
            return False

    def join(self) -> None:
        """Note an endpoint that may have coroutines."""
        with self._lock:
            self._members += 1

    def leave(self) -> None:
        """Note that an endpoint has no more of them; after the last one our own loop ends."""
        with self._lock:
            self._members -= 1
            if self._members or self._own is None:
                return
            own, self._own = self._own, None
        own.close()

    def get(self) -> "asyncio.AbstractEventLoop":
        """Give the loop that coroutines run on now."""
        with self._lock:
            if self._adopted is not None:
                return self._adopted
            if self._own is None or self._own.loop.is_closed():  # a coroutine may have stopped it
                self._own = _OwnLoop()
            return self._own.loop


class _OwnLoop:
    """A loop on a thread of its own.

    Attributes:
        loop: The loop; it runs.
    """

    loop: "asyncio.AbstractEventLoop"

    def __init__(self) -> None:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jmsjca handlers' event loop", daemon=True)
        self._thread.start()
        self._ready.wait()

    def close(self) -> None:
        """Cancel what runs, and end the thread; it is not waited for if a coroutine of its own ends it."""
        with suppress(RuntimeError):  # it is closed already
            self.loop.call_soon_threadsafe(self._over.set)
        if threading.current_thread() is not self._thread:
            self._thread.join(_LONGEST_END)

    def _run(self) -> None:
        import asyncio  # noqa: PLC0415  # only async handlers need it

        with suppress(KeyboardInterrupt):  # raised by a task that a handler began itself
            asyncio.run(self._serve())

    async def _serve(self) -> None:
        import asyncio  # noqa: PLC0415  # likewise

        self._over = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        self._ready.set()
        await self._over.wait()
