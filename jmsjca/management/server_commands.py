"""The command that serves the console: ``jmsjca console``."""

import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from jmsjca.errors import ConfigurationError, ProviderNotInstalledError
from jmsjca.management.presentation import JsonOption, UrlOption, broker_url, print_json

if TYPE_CHECKING:
    import uvicorn

__all__ = ["console_app"]

console_app = typer.Typer(rich_markup_mode=None)

_HOST = "127.0.0.1"
_TOKEN_VARIABLE = "JMSJCA_CONSOLE_TOKEN"  # noqa: S105  # the name of the variable
_MAX_CONNECTIONS = 64
_MAX_HEAD = 32 * 1024  # bytes of the request line and the headers


@console_app.command()
def console(
    url: UrlOption,
    port: Annotated[int, typer.Option(help="The port; 0 for a free one.", min=0, max=65535)] = 8321,
    write: Annotated[
        bool, typer.Option("--write", help="Permit the replay, the edit and the deletion of messages.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Serve web pages about a broker, for browsers on this machine only, until SIGINT.

    The address that it prints has the access token. JMSJCA_CONSOLE_TOKEN in the environment sets the token.
    """
    from jmsjca.management.console.application import Console  # noqa: PLC0415  # an extra

    application = Console(broker_url(url), token=os.environ.get(_TOKEN_VARIABLE) or None, writable=write)
    with suppress(KeyboardInterrupt), _listening(port) as listener:
        server = _server(application)
        address = f"http://{_HOST}:{listener.getsockname()[1]}/"
        if json:
            print_json({"address": address, "token": application.token, "writable": write}, lines=True)
        else:
            typer.echo(f"{address}?token={application.token}")
        server.run(sockets=[listener])


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server((_HOST, port))
    except OSError as error:
        raise ConfigurationError(
            f"The port {_HOST}:{port} cannot be used: {error}. Name another with --port."
        ) from error


def _server(application: object) -> "uvicorn.Server":
    try:
        import uvicorn  # noqa: PLC0415  # an extra

        from jmsjca.management.console.connections import PunctualProtocol  # noqa: PLC0415
    except ImportError as error:
        raise ProviderNotInstalledError('The console needs uvicorn: pip install "jmsjca[console]"') from error
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
