"""The outcome of a run: the account of the other process, with the rates and the picture beside it."""

import json
import subprocess
from typing import Any

from jmsjca.management.demo.listening import Totals
from jmsjca.management.demo.picture import draw_delays
from jmsjca.management.demo.processes import DemoError, python
from jmsjca.management.demo.settings import DemoSettings

__all__ = ["conclude", "processed"]

_ACCOUNT = "jmsjca.management.demo.account"


def conclude(
    settings: DemoSettings, totals: Totals, send_seconds: float, crash: dict[str, int] | None
) -> dict[str, Any]:
    """Have the account taken, and draw the picture.

    Args:
        settings: The run.
        totals: What the listener added up.
        send_seconds: How long sending took.
        crash: What the crash saw; None if there was none.

    Raises:
        DemoError: The account could not be taken.
    """
    account = _taken(settings)
    rows, seconds = processed(settings)
    picture = settings.path("delays.png")
    draw_delays(settings.delays, picture)
    return account | {
        "heard": totals.flights,
        "balanced": account["balanced"] and totals.flights == account["processed"],
        "per_second": {
            "sent": _rate(account["sent"], send_seconds),
            "processed": _rate(rows, seconds),
            "results_heard": _rate(totals.results, totals.seconds),
        },
        "crash": crash,
        "picture": str(picture),
    }


def processed(settings: DemoSettings) -> tuple[int, float]:
    """Rows and seconds of all batches; of one that was repeated, the last time counts."""
    if not settings.batches.exists():
        return 0, 0.0
    lines = [line for line in settings.batches.read_text().splitlines(keepends=True) if line.endswith("\n")]
    batches = {b["batch"]: b for b in map(json.loads, lines)}
    return sum(b["rows"] for b in batches.values()), sum(b["end"] - b["begin"] for b in batches.values())


def _taken(settings: DemoSettings) -> dict[str, Any]:
    command = python(_ACCOUNT, str(settings.path("settings.json")))
    told = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # our own module
    if told.returncode:
        raise DemoError(f"The account could not be taken: {told.stderr.strip()}")
    account: dict[str, Any] = json.loads(told.stdout)
    return account


def _rate(count: int, seconds: float) -> int:
    return round(count / seconds) if seconds else 0
