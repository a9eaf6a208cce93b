"""The command that sends the messages of an outbox: ``jmsjca relay``."""

import signal
from typing import Annotated, Any

import typer

from jmsjca.errors import ConfigurationError, ResourceAllocationError
from jmsjca.management.presentation import JsonOption, UrlOption, broker_url, print_rows
from jmsjca.outbound.factory import ConnectionFactory

__all__ = ["relay_app"]

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
def relay(  # noqa: PLR0917  # typer calls it by name
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
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415  # an extra, which is installed by now

    try:
        before = sender.get_stats().depth
        if once:
            sender.drain()
        else:
            _serve(sender)
        stats = sender.get_stats()
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).partition("\n")[0]
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
    from jmsjca.transactions import Outbox  # noqa: PLC0415  # names the extra if it is missing

    return Outbox(_metadata(), name=table, engine=_engine(database))


def _relay(outbox: Any, url: str, batch_size: int, poll_interval: float) -> Any:
    from jmsjca.transactions import Relay  # noqa: PLC0415  # an extra

    return Relay(outbox, ConnectionFactory(url), batch_size=batch_size, poll_interval=poll_interval)


def _metadata() -> Any:
    from sqlalchemy import MetaData  # noqa: PLC0415  # an extra

    return MetaData()


def _engine(database: str) -> Any:
    from sqlalchemy import create_engine  # noqa: PLC0415  # an extra
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

    try:
        return create_engine(database)
    except (SQLAlchemyError, ImportError) as error:  # their texts may show the URL
        raise ConfigurationError(
            f"--database is not the URL of a database with an installed driver ({type(error).__name__})."
        ) from None
