"""One run of the main job, from the first event to the account."""

import json
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from jmsjca.adapter import ResourceAdapter
from jmsjca.errors import InvalidOptionError
from jmsjca.management.demo.batches import sum_up
from jmsjca.management.demo.broker import clean_up, subscribe
from jmsjca.management.demo.crash import CrashMoment
from jmsjca.management.demo.display import Display
from jmsjca.management.demo.listening import Totals, listen
from jmsjca.management.demo.outcome import conclude
from jmsjca.management.demo.patience import Patience
from jmsjca.management.demo.processes import DemoError, QueryProcess, python
from jmsjca.management.demo.request import DemoRequest
from jmsjca.management.demo.sending import send_events
from jmsjca.management.demo.settings import DemoSettings
from jmsjca.spark.java import find_java

__all__ = ["run_demo"]

_GLANCE = 0.2
_QUERY = "jmsjca.management.demo.query"

Crash = dict[str, int]


def run_demo(
    request: DemoRequest,
    display: Display,
    *,
    query_module: str = _QUERY,
    crash_moment: Callable[[DemoSettings], CrashMoment] = CrashMoment,
) -> dict[str, Any]:
    """Run the main job and take its account.

    Args:
        request: What the user asked for.
        display: Where to show it.
        query_module: The module that runs the query.
        crash_moment: Tells when to crash.

    Returns:
        The account: the numbers of messages, the rates, and ``balanced``.

    Raises:
        ConfigurationError: Something that was asked for cannot be done.
        NotSupportedError: The broker cannot do what is needed.
        DemoError: A process of the run failed.
    """
    total = request.check()
    java_home = find_java()
    settings = _settle_in(request, total)
    command = python(query_module, str(settings.save()))
    display.say(f"Everything of this run is in {settings.folder}")
    run = _Run(request, settings, display, total, lambda: QueryProcess(command, settings.path("query.log"), java_home))
    account = run.go(crash_moment)
    for file in filter(None, (settings.path("account.json"), request.json)):
        file.write_text(json.dumps(account, indent=2) + "\n")
    if account["balanced"]:  # otherwise what is there may tell why
        clean_up(settings)
    return account


class _Run:
    """The steps of a run, and what they share."""

    def __init__(
        self,
        request: DemoRequest,
        settings: DemoSettings,
        display: Display,
        total: int,
        start_query: Callable[[], QueryProcess],
    ) -> None:
        self._request = request
        self._settings = settings
        self._display = display
        self._total = total
        self._start_query = start_query
        self._totals = Totals()
        self._stalled: list[str] = []

    def go(self, crash_moment: Callable[[DemoSettings], CrashMoment]) -> dict[str, Any]:
        """Send, process, crash if asked to, and take the account."""
        subscribe(self._settings)
        adapter = ResourceAdapter(self._settings.url)
        listen(adapter, self._settings, self._totals)
        with adapter, self._display:
            with self._start_query() as query:
                seconds = self._send()
                crash = self._crash(query, crash_moment(self._settings)) if self._request.crash else None
                if crash is None:
                    self._follow(query)
            if crash is not None:
                with self._start_query() as query:
                    self._follow(query)
            self._await_listener()
        return conclude(self._settings, self._totals, seconds, crash, " ".join(self._stalled) or None)

    def _send(self) -> float:
        request = self._request
        return send_events(
            self._settings,
            request.stream(),
            request.poison,
            request.seed,
            lambda sent: self._display.update("sent", sent, self._total),
        )

    def _crash(self, query: QueryProcess, moment: CrashMoment) -> Crash:
        if not query.crash_when(moment.has_come):
            raise DemoError(
                "The query ended before it was seen with unsettled messages; it takes more events to crash it."
            )
        crash = moment.figures()
        self._display.say(
            f"Crash: killed the query after {crash['committed_batches']} committed batches, with "
            f"{crash['unsettled_messages']} received messages unsettled; starting it again."
        )
        return crash

    def _follow(self, query: QueryProcess) -> None:
        running = True
        while running:
            time.sleep(_GLANCE)
            running = query.is_running()
            self._show(sum_up(self._settings.batches).events)
        if (done := sum_up(self._settings.batches).events) < self._total:
            self._give_up(f"The query has processed {done} of {self._total} events")

    def _await_listener(self) -> None:
        """Wait until the listener has heard of all flights that the query has reported."""
        flights = sum_up(self._settings.batches).flights
        patience = Patience(self._settings.patience)
        while self._totals.flights < flights and not patience.is_over(self._totals.results):
            time.sleep(_GLANCE)
        self._display.update("heard by listener", self._totals.flights, self._total)
        if self._totals.flights < flights:
            self._give_up(f"The listener has heard of {self._totals.flights} of {flights} flights")

    def _show(self, done: int) -> None:
        self._display.update("processed by Spark", done, self._total)
        self._display.update("heard by listener", self._totals.flights, self._total)

    def _give_up(self, what: str) -> None:
        """A step makes no progress: the account tells what became of the rest."""
        text = f"{what}, and no more for {self._settings.patience:g} s."
        self._stalled.append(text)
        self._display.say(text)


def _settle_in(request: DemoRequest, total: int) -> DemoSettings:
    run = datetime.now().strftime("%Y%m%d-%H%M%S-%f")  # noqa: DTZ005  # the user's own time
    folder = (request.output / run).resolve()
    _make_folder(folder)
    return DemoSettings(
        str(folder),
        request.url or f"embedded://{folder}/broker.db",
        str(request.airports.resolve()) if request.airports else None,
        batch=min(max(total // 8, 50), 10_000),
        run=run,
        shared=request.url is not None,
        patience=request.patience,
    )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise InvalidOptionError(f"--output: {folder} cannot be made: {error.strerror}.") from error
