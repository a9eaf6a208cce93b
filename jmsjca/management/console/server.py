"""The console's own server: a connection that sends no whole request in time is closed."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["PunctualProtocol"]

_REQUEST_SECONDS = 15.0  # for the head of a request; uvicorn itself waits forever


class PunctualProtocol(H11Protocol):
    """HTTP over a connection that is closed when it waits too long for the head of a request.

    So a client that sends a byte now and then does not keep others out. A response of any length is not affected.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the base class
        """Begin to watch a connection."""
        super().connection_made(transport)
        self._watch(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Watch no longer."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _watch(self, before: object) -> None:
        """Start a timer that checks whether a request has begun since.

        Args:
            before: The latest request until now.
        """
        self._timer = self.loop.call_later(_REQUEST_SECONDS, self._look, before)

    def _look(self, before: object) -> None:
        latest: object = self.cycle  # None before the first request
        if latest is before and getattr(latest, "response_complete", True):
            self.transport.close()
        else:
            self._watch(latest)
