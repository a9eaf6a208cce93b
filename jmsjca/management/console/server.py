"""The console's HTTP server. It closes connections that do not send a complete request in time."""

import asyncio
import socket

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from jmsjca.errors import ConfigurationError

__all__ = ["HOST", "PunctualProtocol", "console_server", "listen"]

HOST = "127.0.0.1"
"""The only address: the console is for browsers on this machine."""

_MAX_CONNECTIONS = 64
_MAX_HEAD = 32 * 1024  # bytes of request line and headers
_REQUEST_SECONDS = 15.0  # until the head of a request is complete; uvicorn itself waits forever


def listen(port: int) -> socket.socket:
    """Open a socket that listens on a port; 0 for a free port.

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
    """Create the server of a console. Its method ``run`` serves on sockets."""
    config = uvicorn.Config(
        application,  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # an ASGI application
        log_level="warning",
        access_log=False,  # it would contain the token of the first address
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
    """HTTP with a time limit for the head of each request, after which the connection is closed.

    So a client that sends a byte now and then cannot block other clients. The duration of a response is not limited.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the base class
        """Start to watch the connection."""
        super().connection_made(transport)
        self._watch(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _watch(self, before: object) -> None:
        """Start a timer that checks whether a request has begun since then.

        Args:
            before: The latest request so far.
        """
        self._timer = self.loop.call_later(_REQUEST_SECONDS, self._look, before)

    def _look(self, before: object) -> None:
        latest: object = self.cycle  # None before the first request
        if latest is before and getattr(latest, "response_complete", True):
            self.transport.close()
        else:
            self._watch(latest)
