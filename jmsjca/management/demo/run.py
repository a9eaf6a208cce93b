"""One run of the main job, from the first event to the account."""

import json
import subprocess
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from jmsjca.adapter import ResourceAdapter
from jmsjca.destinations import Subscription
from jmsjca.errors import InvalidOptionError, NotSupportedError
from jmsjca.links import ConnectionSettings, connect
from jmsjca.management.demo.crash import CrashMoment
from jmsjca.management.demo.display import Display
from jmsjca.management.demo.events import check_readable, generate, read_events
from jmsjca.management.demo.listening import Totals, listen
from jmsjca.management.demo.picture import draw_delays
from jmsjca.management.demo.processes import DemoError, QueryProcess, python
from jmsjca.management.demo.sending import send_events
from jmsjca.management.demo.settings import AUDIT, CLIENT_ID, DEAD_LETTERS, FLIGHTS, RESULTS, TOTALS, DemoSettings
from jmsjca.outbound import ConnectionFactory
from jmsjca.spark.java import find_java
from jmsjca.spi import Admin

__all__ = ["DemoError", "DemoRequest", "run_demo"]

_GLANCE = 0.2
_LISTENER_PATIENCE = 60.0
_QUERY = "jmsjca.management.demo.query"
_ACCOUNT = "jmsjca.management.demo.account"


@dataclass(frozen=True, slots=True)
class DemoRequest:
    """What the user asked for.

    Args:
        input: A file of events; None for generated ones.
        airports: A CSV file to join; None for none.
        events: How many events to generate.
        poison: The share of bodies to spoil, 0 to 1.
        crash: True to kill the query in the middle and start it again.
        url: The broker; None for an embedded one in the run's folder.
        output: Below this folder the run makes one of its own.
        seed: Which events are generated and spoiled.
        json: Where to write the account, too.
    """

    input: Path | None = None
    airports: Path | None = None
    events: int = 20_000
    poison: float = 0.0
    crash: bool = False
    url: str | None = None
    output: Path = Path("jmsjca-demo")
    seed: int = 2001
    json: Path | None = None

    def check(self) -> None:
        """Refuse what cannot be done, before anything is begun.

        Raises:
            ConfigurationError: A file cannot be read, a number is out of range, the URL cannot be used.
        """
        if self.input is not None:
            check_readable(self.input, "--input")
        if self.airports is not None:
            check_readable(self.airports, "--airports")
        if not 0 <= self.poison <= 1:
            raise InvalidOptionError(f"--poison {self.poison} must be a share between 0 and 1, for instance 0.01.")
        if self.json is not None and not self.json.resolve().parent.is_dir():
            raise InvalidOptionError(f"--json {self.json} cannot be written: there is no folder {self.json.parent}.")
        if self.url is not None:
            _check_broker(self.url)
        if self.events < 1:
            raise InvalidOptionError(f"--events {self.events} must be at least 1.")


def run_demo(
    request: DemoRequest,
    display: Display,
    *,
    query_module: str = _QUERY,
    crash_moment: Callable[[DemoSettings, Admin], CrashMoment] = CrashMoment,
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
        DemoError: A process of the run failed.
    """
    request.check()
    java_home = find_java()
    settings = _settle_in(request)
    display.say(f"Everything of this run is in {settings.folder}")
    command = python(query_module, str(settings.save()))
    totals = Totals()
    adapter = ResourceAdapter(settings.url)
    listen(adapter, totals)
    with _broker(settings) as admin, adapter, display:

        def query() -> QueryProcess:
            return QueryProcess(command, settings.path("query.log"), java_home)

        with query() as process:
            seconds = _send(request, settings, display)
            crash = _crash(process, crash_moment(settings, admin), display) if request.crash else None
            if crash is None:
                _follow(process, settings, totals, display)
        if crash is not None:
            with query() as process:
                _follow(process, settings, totals, display)
        _await_listener(admin, totals, display)
    account = _account(settings, totals, seconds, crash)
    for file in filter(None, (settings.path("account.json"), request.json)):
        file.write_text(json.dumps(account, indent=2) + "\n")
    return account


def _settle_in(request: DemoRequest) -> DemoSettings:
    folder = (request.output / datetime.now().strftime("%Y%m%d-%H%M%S-%f")).resolve()  # noqa: DTZ005  # the user's own time
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise InvalidOptionError(f"--output {request.output} cannot be written: {error.strerror}.") from error
    airports = str(request.airports.resolve()) if request.airports else None
    count = request.events if request.input is None else sum(1 for _ in read_events(request.input))
    batch = min(max(count // 8, 50), 10_000)
    return DemoSettings(str(folder), request.url or f"embedded://{folder}/broker.db", airports, batch)


def _check_broker(url: str) -> None:
    connection = connect(ConnectionSettings(url))
    shared = connection.capabilities.shared_between_processes
    connection.close()
    if not shared:
        raise NotSupportedError(f"--url {url} cannot serve several processes; use a file: embedded:///folder/file.db")


@contextmanager
def _broker(settings: DemoSettings) -> Generator[Admin]:
    """Connect, see that the broker is empty, and subscribe before anything is published."""
    with ConnectionFactory(settings.url, client_id=CLIENT_ID).create_connection() as connection:
        admin = connection.admin
        if admin is None:
            raise NotSupportedError(
                f"--url {settings.url}: the demo needs a broker that tells the depth of its queues."
            )
        for queue in (FLIGHTS, DEAD_LETTERS):
            if admin.depth(queue).total:
                raise InvalidOptionError(f"--url {settings.url}: {queue} is not empty; name a broker that is.")
        with connection.create_session() as session:
            for name in (AUDIT, TOTALS):
                session.create_durable_consumer(RESULTS, name)
        yield admin


def _send(request: DemoRequest, settings: DemoSettings, display: Display) -> float:
    events: Iterable[dict[str, Any]]
    events = generate(request.events, request.seed) if request.input is None else read_events(request.input)
    total = request.events if request.input is None else None
    return send_events(settings, events, request.poison, request.seed, lambda n: display.update("sent", n, total))


def _crash(process: QueryProcess, moment: CrashMoment, display: Display) -> dict[str, int]:
    if not process.crash_when(moment.has_come):
        raise DemoError("The query ended before it could be crashed: too few events for a second batch.")
    crash = moment.figures()
    display.say(
        f"Crash: killed the query after {crash['committed_batches']} committed batches, with "
        f"{crash['unsettled_messages']} received messages unsettled; starting it again."
    )
    return crash


def _follow(process: QueryProcess, settings: DemoSettings, totals: Totals, display: Display) -> None:
    total = len(settings.journal.read_text().splitlines())
    while process.is_running():
        display.update("processed by Spark", _processed(settings)[0], total)
        display.update("heard by listener", totals.flights, total)
        time.sleep(_GLANCE)
    display.update("processed by Spark", _processed(settings)[0], total)


def _processed(settings: DemoSettings) -> tuple[int, float]:
    """Rows and seconds of all batches; of one that was repeated, the last time counts."""
    if not settings.batches.exists():
        return 0, 0.0
    lines = [line for line in settings.batches.read_text().splitlines(keepends=True) if line.endswith("\n")]
    batches = {b["batch"]: b for b in map(json.loads, lines)}
    return sum(b["rows"] for b in batches.values()), sum(b["end"] - b["begin"] for b in batches.values())


def _await_listener(admin: Admin, totals: Totals, display: Display) -> None:
    end = time.monotonic() + _LISTENER_PATIENCE
    waiting = Subscription(RESULTS, TOTALS, CLIENT_ID)
    while admin.depth(waiting).total:
        if time.monotonic() > end:
            raise DemoError(f"The listener has not consumed all results within {_LISTENER_PATIENCE:.0f} s.")
        time.sleep(_GLANCE)
    display.update("heard by listener", totals.flights, totals.flights or None)


def _account(settings: DemoSettings, totals: Totals, seconds: float, crash: dict[str, int] | None) -> dict[str, Any]:
    told = subprocess.run(  # noqa: S603  # our own module
        python(_ACCOUNT, str(settings.path("settings.json"))), capture_output=True, text=True, check=False
    )
    if told.returncode:
        raise DemoError(f"The account could not be taken: {told.stderr.strip()}")
    account: dict[str, Any] = json.loads(told.stdout)
    rows, spark_seconds = _processed(settings)
    account["heard"] = totals.flights
    account["balanced"] = account["balanced"] and account["heard"] == account["processed"]
    account["per_second"] = {
        "sent": _rate(account["sent"], seconds),
        "processed": _rate(rows, spark_seconds),
        "results_heard": _rate(totals.results, totals.seconds),
    }
    account["crash"] = crash
    account["picture"] = str(settings.path("delays.png"))
    draw_delays(settings.delays, settings.path("delays.png"))
    return account


def _rate(count: int, seconds: float) -> int:
    return round(count / seconds) if seconds else 0
