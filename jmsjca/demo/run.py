"""One run of the demo, from the first event to the account, with the listener of the results."""

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from jmsjca.adapter import ResourceAdapter
from jmsjca.demo.account import Repeats
from jmsjca.demo.display import Display, draw_delays
from jmsjca.demo.events import DemoRequest, send_events
from jmsjca.demo.processes import DemoError, QueryProcess, python
from jmsjca.demo.progress import CrashMoment, Patience, sum_up
from jmsjca.demo.settings import DemoSettings, clean_up, subscribe
from jmsjca.errors import InvalidOptionError
from jmsjca.messages import DUPLICATE_ID, Message
from jmsjca.spark.java import find_java

__all__ = ["Totals", "conclude", "listen", "run_demo"]

_WAIT = 0.5  # seconds between two results from which on the listener had nothing to do

_GLANCE = 0.2
_QUERY = "jmsjca.demo.query"

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


@dataclass
class Totals:
    """What the listener has added up.

    Attributes:
        results: How many results came.
        flights: How many flights they speak of.
        delay: Minutes of delay, by airport.
        latest: When the latest result came, on the performance counter.
        seconds: How long results were coming; waits for the next batch are left out.
    """

    results: int = 0
    flights: int = 0
    delay: dict[str, int] = field(default_factory=dict[str, int])
    seconds: float = 0.0
    latest: float = 0.0

    def add(self, airport: str, flights: int, delay: int) -> None:
        """Add one result."""
        now = time.perf_counter()
        self.seconds += now - self.latest if now - self.latest < _WAIT else 0.0
        self.latest = now
        self.results += 1
        self.flights += flights
        self.delay[airport] = self.delay.get(airport, 0) + delay


def listen(adapter: ResourceAdapter, settings: DemoSettings, totals: Totals) -> None:
    """Declare the listener."""
    repeats = Repeats()
    totals_of = settings.totals

    @adapter.listener(
        totals_of.topic,
        subscription_durability="Durable",
        subscription_name=totals_of.name,
        client_id=totals_of.client_id,
    )
    def on_result(message: Message) -> None:
        """Add up one result, unless it was sent again or came again."""
        body = message.get_body(str)
        if not repeats.is_repeat(message.get_string_property(DUPLICATE_ID), body):
            result = json.loads(body)
            totals.add(result["airport"], result["flights"], result["delay"])


_ACCOUNT = "jmsjca.demo.account"


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
