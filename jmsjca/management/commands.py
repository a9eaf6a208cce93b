"""The commands of the command line, one function each."""

import tomllib
from pathlib import Path
from typing import Annotated, cast

import typer

from jmsjca import __version__
from jmsjca.errors import ConfigurationError, ProviderNotInstalledError
from jmsjca.management.bench_command import bench_app
from jmsjca.management.console_command import console_app
from jmsjca.management.dead_letter_commands import dead_letter_app
from jmsjca.management.file_commands import file_app
from jmsjca.management.mcp_command import mcp_app
from jmsjca.management.presentation import JsonOption, print_json, print_output
from jmsjca.management.queue_commands import queue_app, selector_app
from jmsjca.management.relay_command import relay_app
from jmsjca.management.spark_commands import spark_app
from jmsjca.management.worker_commands import worker_app

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
app.add_typer(queue_app)
app.add_typer(relay_app)
app.add_typer(worker_app)
app.add_typer(console_app)
app.add_typer(mcp_app)
app.add_typer(bench_app)
app.add_typer(file_app, name="file")
app.add_typer(dead_letter_app, name="dlq")
app.add_typer(selector_app, name="selector")
app.add_typer(spark_app, name="spark")


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
    poison: Annotated[float, typer.Option(help="The share of message bodies to corrupt, 0 to 1.")] = 0.0,
    crash: Annotated[
        bool, typer.Option("--crash", help="Kill the Spark query in the middle and start it again.")
    ] = False,
    url: Annotated[
        str | None,
        typer.Option(
            envvar="JMSJCA_URL",
            help="The broker: embedded:///folder/file.db, amqp://host:5672 or stomp://host:61613. With a password: "
            "amqps://user:password@host, or amqp://user:password@host?allow_insecure_login=true on a network that you "
            "trust. The broker must have transactions and durable subscriptions. "
            "Without a URL, the demo uses an embedded broker in a new file.",
        ),
    ] = None,
    output: Annotated[Path, typer.Option(help="The folder below which each run creates its own folder.")] = Path(
        "jmsjca-demo"
    ),
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the account to this file.")] = None,
    seed: Annotated[int, typer.Option(help="Seed for the generated and corrupted events.")] = 2001,
) -> int:
    """Send events through a durable queue and a Spark query, and account for every event.

    The exit status is 0 only if no event was lost or duplicated.
    """
    try:
        from jmsjca.demo.display import Display  # noqa: PLC0415  # rich
        from jmsjca.demo.events import DemoRequest  # noqa: PLC0415
        from jmsjca.demo.run import run_demo  # noqa: PLC0415  # psutil, pyspark
    except ImportError as error:
        raise ProviderNotInstalledError(f'the demo needs {error.name}: pip install "jmsjca[demo]"') from error
    request = DemoRequest(input, airports, events, poison, crash, url, output, seed, json_file)
    display = Display()
    account = run_demo(request, display)
    display.account("The account", _figures(account))
    display.say(f"Picture: {account['picture']}")
    return 0 if account["balanced"] else 1


def _figures(account: dict[str, object]) -> dict[str, object]:
    """Flatten nested figures, one for each line."""
    flat: dict[str, object] = {}
    for name, value in account.items():
        words = name.replace("_", " ")
        if isinstance(value, dict):
            nested = cast("dict[str, object]", value)
            flat |= {f"{words}: {key.replace('_', ' ')}": figure for key, figure in nested.items()}
        elif value is not None and name != "picture":
            flat[words] = value
    return flat


@app.command()
def convert(
    files: Annotated[
        list[Path], typer.Argument(help="ra.xml, sun-ra.xml, ejb-jar.xml, sun-ejb-jar.xml, weblogic-ejb-jar.xml, TOML.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The TOML file; the output without one.")
    ] = None,
    json: JsonOption = False,
) -> int:
    """Convert deployment descriptors to a configuration file, and list what has no place in it.

    Passwords, and whatever may hold one, become references to environment variables.
    """
    from jmsjca.descriptors import read, to_toml  # noqa: PLC0415  # an extra

    deployment = read(*files)
    text = to_toml(deployment.configuration)
    if output is not None:
        try:
            output.write_text(text, "utf-8")
        except OSError as error:
            raise ConfigurationError(f"--output {output} cannot be written: {error}. Name another file.") from error
    if json:
        report = [entry._asdict() for entry in deployment.report]
        print_json({"configuration": tomllib.loads(text), "report": report})
        return 0
    if output is None:
        print_output(text, nl=False)
    for entry in deployment.report:
        typer.echo(str(entry), err=True)
    return 0
