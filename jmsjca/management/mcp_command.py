"""The command that serves the tools of MCP: ``jmsjca mcp``."""

import signal
from pathlib import Path
from typing import Annotated

import typer

from jmsjca.errors import ProviderNotInstalledError
from jmsjca.management.insight import Insight
from jmsjca.management.presentation import UrlOption, broker_url

__all__ = ["mcp_app"]

mcp_app = typer.Typer(rich_markup_mode=None)


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
    server.run("stdio")
