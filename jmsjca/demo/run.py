"""One run of the demo, from the first event to the account, with its child processes and its display."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from jmsjca.adapter import ResourceAdapter
from jmsjca.demo.account import IdempotentReceiver, read_parquet
from jmsjca.demo.events import DemoRequest, send_events
from jmsjca.demo.progress import CrashTrigger, StallDetector, sum_up
from jmsjca.demo.settings import DemoSettings, clean_up, subscribe
from jmsjca.errors import InvalidOptionError, JMSError
from jmsjca.messages import DUPLICATE_ID, Message
from jmsjca.spark.java import find_java

__all__ = [
    "DemoError",
    "Display",
    "QueryProcess",
    "Totals",
    "await_end",
    "build_report",
    "draw_delays",
    "listen",
    "python",
    "run_demo",
]

_GONE = 30.0  # seconds within which killed processes must end
_WATCH_PAUSE = 0.0005
_GLANCES = 200
_LOG_TAIL = 2000

_STEPS = 4  # plain lines per bar

_SHOWN = 20


class DemoError(JMSError):
    """The run failed before the account was complete."""


def python(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module with this Python interpreter."""
    return [sys.executable, "-m", module, *arguments]


class QueryProcess:
    """The process of the Spark query with its children: the JVM and the Python workers.

    Args:
        command: The command to run.
        log: The file for its output.
        java_home: The home folder of the Java installation for Spark.
    """

    def __init__(self, command: Sequence[str], log: Path, java_home: Path) -> None:
        environment = os.environ | {
            "JAVA_HOME": str(java_home),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        self._log = log
        with log.open("ab") as file:
            self._process = subprocess.Popen(  # noqa: S603  # our own module
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment, start_new_session=True
            )

    def is_running(self) -> bool:
        """Return True while the process runs.

        Raises:
            DemoError: The process failed. The message shows the end of its output.
        """
        code = self._process.poll()
        if code:
            tail = self._log.read_text(errors="replace")[-_LOG_TAIL:]
            raise DemoError(f"The Spark query failed with exit status {code}. The end of {self._log}:\n{tail}")
        return code is None

    def crash_when(self, ripe: Callable[[], bool]) -> bool:
        """Kill the process and its children while a condition holds.

        The condition is checked again after all processes are suspended, so it still holds at the time of the kill.

        Returns:
            False if the process ended before the condition held.
        """
        while self.is_running():
            family = self._family()  # first: the condition may no longer hold once the processes are listed
            if _ripens(ripe):
                self._stop(family)
                if ripe():
                    _signal(family, psutil.Process.kill)
                    self._process.wait()
                    await_end(family, _GONE)
                    return True
                _signal(family, psutil.Process.resume)
        return False

    def end(self) -> None:
        """Kill the process and its children if they still run."""
        if self._process.poll() is None:
            _signal(self._family(), psutil.Process.kill)
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def _stop(self, family: list[psutil.Process]) -> None:
        """Suspend all processes, the newest first, including processes that are started during the loop."""
        fresh = family
        while fresh:
            _signal(fresh[::-1], psutil.Process.suspend)
            fresh = [process for process in self._family() if process not in family]
            family += fresh

    def _family(self) -> list[psutil.Process]:
        try:
            parent = psutil.Process(self._process.pid)
            return [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


def await_end(family: Sequence[psutil.Process], seconds: float) -> None:
    """Wait until killed processes have ended; a zombie counts as ended.

    Raises:
        DemoError: A process still runs after the timeout in seconds.
    """
    _, left = psutil.wait_procs(family, timeout=seconds)
    alive = [process.pid for process in left if _is_alive(process)]
    if alive:
        raise DemoError(f"The processes {', '.join(map(str, alive))} were killed and did not end in {seconds:g} s.")


def _is_alive(process: psutil.Process) -> bool:
    """Return True if a process runs or is suspended; False for a zombie."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _ripens(ripe: Callable[[], bool]) -> bool:
    """Poll a condition for a short time; return True as soon as it holds."""
    for _ in range(_GLANCES):
        if ripe():
            return True
        time.sleep(_WATCH_PAUSE)
    return False


def _signal(family: Sequence[psutil.Process], send: Callable[[psutil.Process], None]) -> None:
    for process in family:
        try:
            send(process)
        except psutil.NoSuchProcess:
            continue


class Display:
    """Shows named progress bars, lines of text, and the account at the end."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._live = self._console.is_terminal
        self._progress = Progress(
            TextColumn("{task.description:<20}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._live,
        )
        self._bars: dict[str, TaskID] = {}
        self._said: dict[str, int] = {}

    def say(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, markup=False)

    def update(self, name: str, done: int, total: int | None) -> None:
        """Update a progress bar; without a terminal, print a line at each quarter."""
        if self._live:
            if name not in self._bars:
                self._bars[name] = self._progress.add_task(name, total=total)
            self._progress.update(self._bars[name], completed=done, total=total)
        elif total and self._said.get(name, 0) < (step := _STEPS * done // total):
            self._said[name] = step
            self.say(f"{name}: {done} of {total}")

    def account(self, title: str, figures: Mapping[str, Any]) -> None:
        """Print names and figures as a table of two columns."""
        table = Table(title=title, show_header=False, title_justify="left")
        table.add_column(justify="left")
        table.add_column(justify="right")
        for name, value in figures.items():
            table.add_row(name, f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value))
        self._console.print(table)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()


def draw_delays(delays: Path, file: Path) -> None:
    """Draw a bar chart of the mean delay of the airports with the most flights.

    Args:
        delays: The Parquet folder with the columns airport, name, flights and delay.
        file: The PNG file to write.
    """
    airports = _busiest(delays)
    from matplotlib.figure import Figure  # slow to import, used once

    figure: Any = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.add_subplot()
    means = [a["delay"] / a["flights"] for a in airports]
    axes.bar([a["airport"] for a in airports], means, color=["#c0392b" if m > 0 else "#27ae60" for m in means])
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_title(f"Mean departure delay of the {len(airports)} busiest airports")
    axes.set_ylabel("minutes")
    for place, airport in enumerate(airports):
        axes.annotate(f"{airport['flights']}", (place, means[place]), ha="center", va="bottom", fontsize=7)
    axes.set_xlabel("airport of departure (number of flights above its bar)")
    figure.savefig(file, dpi=110)


def _busiest(delays: Path) -> list[dict[str, Any]]:
    grouped = read_parquet(delays).group_by("airport").aggregate([("flights", "sum"), ("delay", "sum")])
    sums = grouped.sort_by([("flights_sum", "descending")])
    rows = [{"airport": r["airport"], "flights": r["flights_sum"], "delay": r["delay_sum"]} for r in sums.to_pylist()]
    return rows[:_SHOWN]


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
        redelivery_handling="3:100; 10:1000",  # retries forever: the account needs every result
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
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # our own module
    if done.returncode:
        raise DemoError(f"The account could not be taken: {done.stderr.strip()}")
    account: dict[str, Any] = json.loads(done.stdout)
    return account


def _rate(count: int, seconds: float) -> int:
    return round(count / seconds) if seconds else 0
