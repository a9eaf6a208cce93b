"""The console's own server: a connection that sends no whole request in time is closed."""

import asyncio
import socket

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from jmsjca.errors import ConfigurationError

__all__ = ["HOST", "PunctualProtocol", "console_server", "listen"]

HOST = "127.0.0.1"
"""The only address: the console is for browsers on this machine."""

_MAX_CONNECTIONS = 64
_MAX_HEAD = 32 * 1024  # bytes of the request line and the headers
_REQUEST_SECONDS = 15.0  # for the head of a request; uvicorn itself waits forever


def listen(port: int) -> socket.socket:
    """Return a socket that listens on a port; 0 for a free one.

    Raises:
        ConfigurationError: The port cannot be used.
    """
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise ConfigurationError(
            f"The port {HOST}:{port} cannot be used: {error}. Name another with --port."
        ) from error


def console_server(application: object) -> uvicorn.Server:
    """Return the server of a console. Its method ``run`` serves on sockets."""
    config = uvicorn.Config(
        application,  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # an ASGI application
        log_level="warning",
        access_log=False,  # it would have the token of the first address
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        http=PunctualProtocol,
        h11_max_incomplete_event_size=_MAX_HEAD,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_graceful_shutdown=5,
    )
    return uvicorn.Server(config)


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
