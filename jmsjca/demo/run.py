"""One run of the demo, from the first event to the account, with the listener for the results."""

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from jmsjca.adapter import ResourceAdapter
from jmsjca.demo.account import IdempotentReceiver
from jmsjca.demo.display import Display, draw_delays
from jmsjca.demo.events import DemoRequest, send_events
from jmsjca.demo.processes import DemoError, QueryProcess, python
from jmsjca.demo.progress import CrashTrigger, StallDetector, sum_up
from jmsjca.demo.settings import DemoSettings, clean_up, subscribe
from jmsjca.errors import InvalidOptionError
from jmsjca.messages import DUPLICATE_ID, Message
from jmsjca.spark.java import find_java

__all__ = ["Totals", "build_report", "listen", "run_demo"]

_WAIT = 0.5  # seconds between two results above which the listener counts as idle

_GLANCE = 0.2
_QUERY = "jmsjca.demo.query"

Crash = dict[str, int]


def run_demo(
    request: DemoRequest,
    display: Display,
    *,
    query_module: str = _QUERY,
    crash_moment: Callable[[DemoSettings], CrashTrigger] = CrashTrigger,
) -> dict[str, Any]:
    """Run the main job and return its account.

    Args:
        request: The options of the user.
        display: The display for progress and account.
        query_module: The module that runs the query.
        crash_moment: Creates the trigger of the crash.

    Returns:
        The account: the numbers of messages, the rates, and ``balanced``.

    Raises:
        ConfigurationError: An option is invalid.
        NotSupportedError: The broker lacks a capability that the demo needs.
        DemoError: A process of the run failed.
    """
    total = request.check()
    java_home = find_java()
    settings = _prepare_folder(request, total)
    command = python(query_module, str(settings.save()))
    display.say(f"Everything of this run is in {settings.folder}")
    run = _Run(request, settings, display, total, lambda: QueryProcess(command, settings.path("query.log"), java_home))
    account = run.go(crash_moment)
    for file in filter(None, (settings.path("account.json"), request.json)):
        file.write_text(json.dumps(account, indent=2) + "\n")
    if account["balanced"]:  # otherwise the destinations are kept for diagnosis
        clean_up(settings)
    return account


class _Run:
    """The steps of a run and their shared state."""

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

    def go(self, crash_moment: Callable[[DemoSettings], CrashTrigger]) -> dict[str, Any]:
        """Send and process the events, crash if requested, and return the account."""
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
        return build_report(self._settings, self._totals, seconds, crash, " ".join(self._stalled) or None)

    def _send(self) -> float:
        request = self._request
        return send_events(
            self._settings,
            request.stream(),
            request.poison,
            request.seed,
            lambda sent: self._display.update("sent", sent, self._total),
        )

    def _crash(self, query: QueryProcess, moment: CrashTrigger) -> Crash:
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
        """Wait until the listener has received the results of all flights that the query has processed."""
        flights = sum_up(self._settings.batches).flights
        patience = StallDetector(self._settings.patience)
        while self._totals.flights < flights and not patience.is_over(self._totals.results):
            time.sleep(_GLANCE)
        self._display.update("heard by listener", self._totals.flights, self._total)
        if self._totals.flights < flights:
            self._give_up(f"The listener has heard of {self._totals.flights} of {flights} flights")

    def _show(self, done: int) -> None:
        self._display.update("processed by Spark", done, self._total)
        self._display.update("heard by listener", self._totals.flights, self._total)

    def _give_up(self, what: str) -> None:
        """Record that a step makes no progress; the account shows the outcome of the remaining events."""
        text = f"{what}, and no more for {self._settings.patience:g} s."
        self._stalled.append(text)
        self._display.say(text)


def _prepare_folder(request: DemoRequest, total: int) -> DemoSettings:
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
    """The sums over the results that the listener received.

    Attributes:
        results: Number of results.
        flights: Number of flights in the results.
        delay: Minutes of delay, by airport.
        latest: Time of the latest result, in seconds of the performance counter.
        seconds: Time during which results arrived; the time between batches is excluded.
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
    """Register the listener for the results."""
    repeats = IdempotentReceiver()
    totals_of = settings.totals

    @adapter.listener(
        totals_of.topic,
        subscription_durability="Durable",
        subscription_name=totals_of.name,
        client_id=totals_of.client_id,
        redelivery_handling="3:100; 10:1000",  # without an end: the account needs every result
    )
    def on_result(message: Message) -> None:
        """Add one result, unless it is a duplicate or redelivered."""
        body = message.get_body(str)
        if not repeats.is_repeat(message.get_string_property(DUPLICATE_ID), body):
            result = json.loads(body)
            totals.add(result["airport"], result["flights"], result["delay"])


_ACCOUNT = "jmsjca.demo.account"


def build_report(
    settings: DemoSettings, totals: Totals, send_seconds: float, crash: dict[str, int] | None, stalled: str | None
) -> dict[str, Any]:
    """Run the account process, draw the chart, and return the report.

    Args:
        settings: The settings of the run.
        totals: The sums over the results that the listener received.
        send_seconds: Duration of sending, in seconds.
        crash: The state at the crash; None without a crash.
        stalled: The missing work when a step was abandoned; None if no step was.

    Raises:
        DemoError: The account process failed.
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
