"""The console: web pages for a broker and its messages. The extra ``console`` installs the dependencies.

`app_for` returns a `Console`: an ASGI application to serve or to mount. ``jmsjca console`` serves it.
"""

from collections.abc import Collection
from importlib.resources import files

from jmsjca.adapter import ResourceAdapter
from jmsjca.errors import (
    ConfigurationError,
    InvalidArgumentError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    MessageFormatError,
    NotSupportedError,
    ProviderNotInstalledError,
)
from jmsjca.management.insight import Insight
from jmsjca.outbound.factory import ConnectionFactory

try:
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from jmsjca.management.console.access import LOOPBACK_HOSTS, Access, ConsoleGuard, Receive, Scope, Send
    from jmsjca.management.console.pages import ActionPages, ReadPages, Renderer
except ImportError as error:
    raise ProviderNotInstalledError(f'The console needs {error.name}: pip install "jmsjca[console]"') from error

__all__ = ["Console", "app_for"]

_CALLER_ERRORS = (
    *(ConfigurationError, InvalidArgumentError, InvalidDestinationError, InvalidSelectorError, MessageFormatError),
)


class Console:
    """Web pages for a broker, and for the activations of an adapter. An ASGI application.

    Every request needs the access token: in the header ``Authorization: Bearer …``, or once in the address
    (``?token=…``), which sets a cookie for the following requests.

    Args:
        source: A resource adapter, to show also its activations; a connection factory, or a connection URL.
        token: Access token of at least 16 characters; None for a random token.
        writable: True to permit changes of messages: publish, replay, move, edit and delete.
        hosts: Host names by which browsers reach the console, without ports.

    Attributes:
        token: The access token.

    Raises:
        ConfigurationError: The token is too short.
        JMSError: As `Insight`.
    """

    def __init__(
        self,
        source: ResourceAdapter | ConnectionFactory | str,
        *,
        token: str | None = None,
        writable: bool = False,
        hosts: Collection[str] = LOOPBACK_HOSTS,
    ) -> None:
        access = Access.of(token, hosts)
        self.token = access.token
        insight = Insight(source)
        self._renderer = Renderer({"csrf": access.csrf, "writable": writable})
        adapter = source if isinstance(source, ResourceAdapter) else None
        routes = _read_routes(ReadPages(insight, adapter, self._renderer))
        if writable:
            routes += _action_routes(ActionPages(insight, self._renderer))
        handlers = {JMSError: self._show_error, HTTPException: self._show_status, Exception: self._show_fault}
        self._guard = ConsoleGuard(Starlette(routes=routes, exception_handlers=handlers), access)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._guard(scope, receive, send)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"  # never shows the token

    async def _show_error(self, request: Request, error: Exception) -> Response:
        return self._renderer.page(request, "error", _status_of(error), text=str(error))

    async def _show_status(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        return self._renderer.page(request, "error", status, text=_STATUS_TEXTS.get(status, "The request failed."))

    async def _show_fault(self, request: Request, error: Exception) -> Response:
        """Answer with a page without details. The server logs the error."""
        del error
        return self._renderer.page(
            request, "error", 500, text="The console failed; the log of its server has the reason."
        )


_STATUS_TEXTS = {
    404: "There is no such page. Changes of messages exist only in a console that is writable.",
    405: "The page does not permit this.",
}


def app_for(
    adapter: ResourceAdapter | ConnectionFactory | str,
    *,
    token: str | None = None,
    writable: bool = False,
    hosts: Collection[str] = LOOPBACK_HOSTS,
) -> Console:
    """Create a console as an ASGI application, to serve or to mount. See `Console`.

    Args:
        adapter: A resource adapter, a connection factory, or a connection URL.
        token: Access token of at least 16 characters; None for a random token, see the attribute ``token``.
        writable: True to permit changes of messages: publish, replay, move, edit and delete.
        hosts: Host names by which browsers reach the console, without ports.

    Raises:
        ConfigurationError: The token is too short.
    """
    return Console(adapter, token=token, writable=writable, hosts=hosts)


def _status_of(error: Exception) -> int:
    if isinstance(error, NotSupportedError):
        return 501
    return 400 if isinstance(error, _CALLER_ERRORS) else 502


def _read_routes(pages: ReadPages) -> list[Route]:
    return [
        Route("/", pages.home, methods=["GET"]),
        Route("/activations", pages.activations, methods=["GET"]),
        Route("/activation", pages.activation, methods=["GET"]),
        Route("/destinations", pages.destinations, methods=["GET"]),
        Route("/subscriptions", pages.subscriptions, methods=["GET"]),
        Route("/subscription", pages.subscription, methods=["GET"]),
        Route("/messages", pages.messages, methods=["GET"]),
        Route("/message", pages.message, methods=["GET"]),
        Route("/dead-letters", pages.dead_letters, methods=["GET"]),
        Route("/capabilities", pages.capabilities, methods=["GET"]),
        Route("/events", pages.events, methods=["GET"]),
        Route("/console.css", _style, methods=["GET"]),
        Route("/live.js", _script, methods=["GET"]),
        Route("/icon", _icon, methods=["GET"]),
    ]


def _action_routes(pages: ActionPages) -> list[Route]:
    return [
        Route("/publish", pages.publish, methods=["POST"]),
        Route("/unsubscribe", pages.unsubscribe, methods=["POST"]),
        Route("/move", pages.move, methods=["POST"]),
        Route("/replay", pages.replay, methods=["POST"]),
        Route("/drop", pages.drop, methods=["POST"]),
        Route("/edit", pages.edit, methods=["POST"]),
        Route("/mend", pages.mend, methods=["POST"]),
    ]


def _style(request: Request) -> Response:
    del request
    return Response(_static("console.css"), media_type="text/css")


def _script(request: Request) -> Response:
    del request
    return Response(_static("live.js"), media_type="text/javascript")


def _icon(request: Request) -> Response:
    """Return the icon, an envelope."""
    del request
    lines = '<path d="M2 7h28v18H2zM2 7l14 10L30 7" fill="none" stroke="#0550ae" stroke-width="2.5"/>'
    return Response(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">{lines}</svg>', media_type="image/svg+xml"
    )


def _static(name: str) -> str:
    return files("jmsjca.management.console").joinpath("static", name).read_text("utf-8")
