"""The commands that run until they are stopped: ``jmsjca console``, ``mcp`` and ``relay``."""

import json
import os
import signal
import socket
import sys
from contextlib import suppress
from io import BufferedIOBase, BufferedReader, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from jmsjca.errors import ConfigurationError, JMSError, ProviderNotInstalledError, ResourceAllocationError
from jmsjca.management.insight import Insight
from jmsjca.management.presentation import JsonOption, UrlOption, broker_url, print_json, print_rows
from jmsjca.outbound.factory import ConnectionFactory

if TYPE_CHECKING:
    import uvicorn

__all__ = ["console_app", "mcp_app", "relay_app"]

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
    from jmsjca.management.console.application import Console  # an extra

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
        import uvicorn  # an extra

        from jmsjca.management.console.server import PunctualProtocol
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


mcp_app = typer.Typer(rich_markup_mode=None)

_LONGEST_LINE = 16 * 1024 * 1024  # bytes; the tools take texts of some kilobytes
_PARSE_ERROR = -32700  # JSON-RPC 2.0, section 5.1


@mcp_app.command()
def mcp(
    url: UrlOption,
    files: Annotated[
        list[Path] | None, typer.Option("--file", "-f", help="A health file that a worker writes; may be repeated.")
    ] = None,
) -> None:
    """Serve ten read-only tools about a broker over MCP, on the standard input and output, until the input ends."""
    try:
        from jmsjca.management.mcp_server import mcp_server  # an extra
    except ImportError as error:
        raise ProviderNotInstalledError(f'the MCP server needs {error.name}: pip install "jmsjca[mcp]"') from error
    server = mcp_server(Insight(broker_url(url), must_exist=True), files or [])
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the server would wait for the thread that reads the input
    lines = _BoundedLines(cast("BufferedReader", sys.stdin.buffer))
    sys.stdin = TextIOWrapper(lines, encoding="utf-8", errors="replace")
    server.run("stdio")
    if lines.is_exceeded:
        _refuse_line()


class _BoundedLines(BufferedIOBase):
    """The standard input, which ends at a line that is too long: the server would hold all of it in memory.

    It has no ``fileno``, so that the server reads this object and not the file behind it.

    Args:
        source: The bytes of the standard input.

    Attributes:
        is_exceeded: True once there was such a line.
    """

    name = "<stdin>"

    def __init__(self, source: BufferedReader) -> None:
        self._source = source
        self._length = 0  # of the line that has begun
        self.is_exceeded = False

    def readable(self) -> bool:
        """Return True."""
        return True

    def read1(self, size: int = -1, /) -> bytes:
        """Return the next bytes; none at the end, or after a line that is too long."""
        data = b"" if self.is_exceeded else self._source.read1(size)
        _, line_end, rest = data.rpartition(b"\n")
        self._length = len(rest) if line_end else self._length + len(rest)
        self.is_exceeded = self.is_exceeded or self._length > _LONGEST_LINE
        return b"" if self.is_exceeded else data


def _refuse_line() -> None:
    """Answer a line that is too long.

    Raises:
        JMSError: Always, for the exit status.
    """
    limit = f"{_LONGEST_LINE // 1024**2} MiB"
    text = f"A line of the input has more than {limit}, so the server ends. End each request by a line end."
    answer = {"jsonrpc": "2.0", "id": None, "error": {"code": _PARSE_ERROR, "message": text}}
    typer.echo(json.dumps(answer))
    raise JMSError(text)


relay_app = typer.Typer(rich_markup_mode=None)

_DatabaseOption = Annotated[
    str,
    typer.Option(
        "--database",
        envvar="JMSJCA_DATABASE",
        help="The URL of the database as SQLAlchemy reads it; env:NAME reads it from an environment variable.",
    ),
]


@relay_app.command()
def relay(  # typer calls it by name
    url: UrlOption,
    database: _DatabaseOption,
    table: Annotated[str, typer.Option(help="The table of the outbox.")] = "jmsjca_outbox",
    batch_size: Annotated[int, typer.Option(help="Messages of one unit at most.")] = 100,
    poll_interval: Annotated[float, typer.Option(help="Seconds between two looks at an empty table.")] = 0.5,
    once: Annotated[bool, typer.Option("--once", help="Send what is waiting, and end.")] = False,
    json: JsonOption = False,
) -> int:
    """Send the messages of an outbox until SIGINT or SIGTERM; several relays may share a table.

    With --once, the exit status is 1 if the broker has refused messages that still wait, or if other relays have leased
    the parts of the table of messages that are due.
    """
    outbox = _outbox(broker_url(database, "--database"), table)
    sender = _relay(outbox, broker_url(url), batch_size, poll_interval)
    from sqlalchemy.exc import SQLAlchemyError  # an extra, which is installed by now

    try:
        before = sender.get_stats().depth
        if once:
            sender.drain()
        else:
            _serve(sender)
        stats = sender.get_stats()
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", error)).partition("\n")[0]
        raise ResourceAllocationError(f"The table {table!r} of the database cannot be used: {reason}") from None
    finally:
        sender.close()
        outbox.engine.dispose()
    print_rows(
        [
            {
                "waiting_before": before,
                "waiting": stats.depth,
                "refused": stats.failing,
                "held": stats.held,
                "oldest": stats.oldest,
            }
        ],
        as_json=json,
    )
    if stats.held:
        raise ResourceAllocationError(
            f"{stats.held} messages of {table!r} were not sent: other relays have leased their parts of the table. A "
            "relay that runs sends them; the leases of one that died are over after 30 s by default: try again then."
        )
    return int(once and stats.failing > 0)


def _serve(sender: Any) -> None:
    def stop(number: int, frame: object) -> None:
        """End the relay after the batch that it is sending."""
        del number, frame
        sender.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    sender.run()


def _outbox(database: str, table: str) -> Any:
    from jmsjca.transactions import Outbox  # names the extra if it is missing

    return Outbox(_metadata(), name=table, engine=_engine(database))


def _relay(outbox: Any, url: str, batch_size: int, poll_interval: float) -> Any:
    from jmsjca.transactions import Relay  # an extra

    return Relay(outbox, ConnectionFactory(url), batch_size=batch_size, poll_interval=poll_interval)


def _metadata() -> Any:
    from sqlalchemy import MetaData  # an extra

    return MetaData()


def _engine(database: str) -> Any:
    from sqlalchemy import create_engine  # an extra
    from sqlalchemy.exc import SQLAlchemyError

    try:
        return create_engine(database)
    except (SQLAlchemyError, ImportError) as error:  # their texts may show the URL
        raise ConfigurationError(
            f"--database is not the URL of a database with an installed driver ({type(error).__name__})."
        ) from None
