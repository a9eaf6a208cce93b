"""The command that serves the tools of MCP: ``jmsjca mcp``."""

import json
import signal
import sys
from io import BufferedIOBase, BufferedReader, TextIOWrapper
from pathlib import Path
from typing import Annotated, cast

import typer

from jmsjca.errors import JMSError, ProviderNotInstalledError
from jmsjca.management.insight import Insight
from jmsjca.management.presentation import UrlOption, broker_url

__all__ = ["mcp_app"]

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
        from jmsjca.management.mcp_server import mcp_server  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise ProviderNotInstalledError(f'the MCP server needs {error.name}: pip install "jmsjca[mcp]"') from error
    server = mcp_server(Insight(broker_url(url)), files or [])
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
