"""The commands, one function each."""

from pathlib import Path
from typing import Annotated, cast

import typer

from jmsjca import __version__
from jmsjca.errors import ProviderNotInstalledError

__all__ = ["app"]

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"jmsjca {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Message-driven endpoints for Python and Spark."""
    del version


@app.command()
def demo(  # noqa: PLR0917  # typer calls it by name
    input: Annotated[  # noqa: A002  # the option's name
        Path | None, typer.Option(help="Events: a JSON array, JSON lines or CSV. Without it, generated ones.")
    ] = None,
    airports: Annotated[Path | None, typer.Option(help="A CSV file of airports (iata, name, city) to join.")] = None,
    events: Annotated[int, typer.Option(help="How many events to generate.")] = 20_000,
    poison: Annotated[float, typer.Option(help="The share of message bodies to spoil, 0 to 1.")] = 0.0,
    crash: Annotated[
        bool, typer.Option("--crash", help="Kill the Spark query in the middle and start it again.")
    ] = False,
    url: Annotated[
        str | None,
        typer.Option(
            envvar="JMSJCA_URL",
            help="The broker: embedded:///folder/file.db, amqp://host:5672 or stomp://host:61613. With a password: "
            "amqps://user:password@host, or amqp://user:password@host?allow_insecure_login=true on a network that you "
            "trust. It must have transactions and durable subscriptions. Without a URL, an embedded one in a new file.",
        ),
    ] = None,
    output: Annotated[Path, typer.Option(help="Each run makes a folder of its own below this one.")] = Path(
        "jmsjca-demo"
    ),
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the account to this file, too.")] = None,
    seed: Annotated[int, typer.Option(help="Which events are generated and spoiled.")] = 2001,
) -> int:
    """Send events through a durable queue and a Spark query, and account for every one of them.

    Exit status 0 only if nothing was lost and nothing came twice.
    """
    try:
        from jmsjca.demo.display import Display  # noqa: PLC0415  # rich
        from jmsjca.demo.events import DemoRequest  # noqa: PLC0415
        from jmsjca.demo.run import run_demo  # noqa: PLC0415  # psutil, pyspark
    except ImportError as error:
        raise ProviderNotInstalledError(f'the demo needs {error.name}: pip install "jmsjca[spark,cli]"') from error
    request = DemoRequest(input, airports, events, poison, crash, url, output, seed, json_file)
    display = Display()
    account = run_demo(request, display)
    display.account("The account", _figures(account))
    display.say(f"Picture: {account['picture']}")
    return 0 if account["balanced"] else 1


def _figures(account: dict[str, object]) -> dict[str, object]:
    """One figure a line: what is nested is spelt out."""
    flat: dict[str, object] = {}
    for name, value in account.items():
        words = name.replace("_", " ")
        if isinstance(value, dict):
            nested = cast("dict[str, object]", value)
            flat |= {f"{words}: {key.replace('_', ' ')}": figure for key, figure in nested.items()}
        elif value is not None and name != "picture":
            flat[words] = value
    return flat
