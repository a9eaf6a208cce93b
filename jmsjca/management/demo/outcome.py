"""The outcome of a run: the account of the other process, with the rates and the picture beside it."""

import json
import subprocess
from typing import Any

from jmsjca.management.demo.batches import sum_up
from jmsjca.management.demo.listening import Totals
from jmsjca.management.demo.picture import draw_delays
from jmsjca.management.demo.processes import DemoError, python
from jmsjca.management.demo.settings import DemoSettings

__all__ = ["conclude"]

_ACCOUNT = "jmsjca.management.demo.account"


def conclude(
    settings: DemoSettings, totals: Totals, send_seconds: float, crash: dict[str, int] | None, stalled: str | None
) -> dict[str, Any]:
    """Have the account taken, and draw the picture.

    Args:
        settings: The run.
        totals: What the listener added up.
        send_seconds: How long sending took.
        crash: What the crash saw; None if there was none.
        stalled: What was missing when a step was given up; None if none was.

    Raises:
        DemoError: The account could not be taken.
    """
    account = _taken(settings)
    done = sum_up(settings.batches)
    picture = settings.path("delays.png")
    draw_delays(settings.delays, picture)
    return account | {
        "heard": totals.flights,
        "balanced": account["balanced"] and totals.flights == account["processed"],
        "per_second": {
            "sent": _rate(account["sent"], send_seconds),
            "processed": _rate(done.events, done.seconds),
            "results_heard": _rate(totals.results, totals.seconds),
        },
        "crash": None if crash is None else crash | {"came_again": done.again},
        "stalled": stalled,
        "picture": str(picture),
    }


def _taken(settings: DemoSettings) -> dict[str, Any]:
    command = python(_ACCOUNT, str(settings.path("settings.json")))
    told = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # our own module
    if told.returncode:
        raise DemoError(f"The account could not be taken: {told.stderr.strip()}")
    account: dict[str, Any] = json.loads(told.stdout)
    return account


def _rate(count: int, seconds: float) -> int:
    return round(count / seconds) if seconds else 0
