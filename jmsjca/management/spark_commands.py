"""The commands for the files that Spark queries keep: ``jmsjca spark``."""

from typing import Annotated

import typer

from jmsjca.management.presentation import JsonOption, print_rows

__all__ = ["spark_app"]

spark_app = typer.Typer(rich_markup_mode=None, help="Check and repair the files of Spark queries.")


@spark_app.callback()
def spark() -> None:
    """Check and repair the files of Spark queries."""


@spark_app.command("repair")
def repair_staging(
    location: Annotated[str, typer.Argument(help="The stagingLocation of the queries: a folder, or a bucket.")],
    accept_loss: Annotated[
        list[str] | None,
        typer.Option(
            "--accept-loss",
            metavar="GENERATION/EPOCH",
            help="Give up the damaged and missing files of an epoch, as the error message names it.",
        ),
    ] = None,
    *,
    endpoint: Annotated[str | None, typer.Option(help="The stagingEndpoint of the queries.")] = None,
    region: Annotated[str | None, typer.Option(help="The stagingRegion of the queries.")] = None,
    credentials: Annotated[
        str | None, typer.Option(metavar="env:NAME|file:PATH", help="Like the stagingCredentials of the queries.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Check the staged messages of Spark queries, and repair what has one right answer. No query may run.

    The exit status is 1 if something remains that must be restored from a backup, or given up by --accept-loss.
    """
    from jmsjca.spark.repair import repair  # noqa: PLC0415  # an extra
    from jmsjca.spark.staging_location import open_location, parse_location  # noqa: PLC0415

    store = open_location(parse_location(location), endpoint=endpoint, region=region, credentials=credentials)
    found = repair(store, accept_loss or [])
    rows = [{"file": f.path, "problem": f.problem, "repaired": f.repaired or "no"} for f in found]
    print_rows(rows, as_json=json)
    if any(not finding.repaired for finding in found):
        raise typer.Exit(1)
