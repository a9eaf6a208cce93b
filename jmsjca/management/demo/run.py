"""One run of the main job, from the first event to the account."""

import json
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from jmsjca.adapter import ResourceAdapter
from jmsjca.config import ConnectionURL
from jmsjca.destinations import Subscription
from jmsjca.errors import InvalidOptionError, NotSupportedError
from jmsjca.management.demo.crash import CrashMoment
from jmsjca.management.demo.display import Display
from jmsjca.management.demo.listening import Totals, listen
from jmsjca.management.demo.outcome import conclude, processed
from jmsjca.management.demo.processes import DemoError, QueryProcess, python
from jmsjca.management.demo.request import DemoRequest
from jmsjca.management.demo.sending import send_events
from jmsjca.management.demo.settings import AUDIT, CLIENT_ID, DEAD_LETTERS, FLIGHTS, RESULTS, TOTALS, DemoSettings
from jmsjca.outbound import ConnectionFactory
from jmsjca.spark.java import find_java
from jmsjca.spi import Admin

__all__ = ["run_demo"]

_GLANCE = 0.2
_LISTENER_PATIENCE = 60.0
_QUERY = "jmsjca.management.demo.query"
_WAITING = Subscription(RESULTS, TOTALS, CLIENT_ID)

Crash = dict[str, int]


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
    total = request.check()
    java_home = find_java()
    settings = _settle_in(request, total)
    command = python(query_module, str(settings.save()))
    display.say(f"Everything of this run is in {settings.folder}")
    run = _Run(request, settings, display, total, lambda: QueryProcess(command, settings.path("query.log"), java_home))
    account = run.go(crash_moment)
    for file in filter(None, (settings.path("account.json"), request.json)):
        file.write_text(json.dumps(account, indent=2) + "\n")
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

    def go(self, crash_moment: Callable[[DemoSettings, Admin], CrashMoment]) -> dict[str, Any]:
        """Send, process, crash if asked to, and take the account."""
        adapter = ResourceAdapter(self._settings.url)
        listen(adapter, self._totals)
        with _broker(self._settings) as admin, adapter, self._display:
            with self._start_query() as query:
                seconds = self._send()
                crash = self._crash(query, crash_moment(self._settings, admin)) if self._request.crash else None
                if crash is None:
                    self._follow(query)
            if crash is not None:
                with self._start_query() as query:
                    self._follow(query)
            self._await_listener(admin)
        return conclude(self._settings, self._totals, seconds, crash)

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
            raise DemoError("The query ended before it could be crashed: too few events for a second batch.")
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
            self._display.update("processed by Spark", processed(self._settings)[0], self._total)
            self._display.update("heard by listener", self._totals.flights, self._total)

    def _await_listener(self, admin: Admin) -> None:
        end = time.monotonic() + _LISTENER_PATIENCE
        while admin.depth(_WAITING).total:
            if time.monotonic() > end:
                raise DemoError(f"The listener has not consumed all results within {_LISTENER_PATIENCE:.0f} s.")
            time.sleep(_GLANCE)
        self._display.update("heard by listener", self._totals.flights, self._total)


def _settle_in(request: DemoRequest, total: int) -> DemoSettings:
    run = datetime.now().strftime("%Y%m%d-%H%M%S-%f")  # noqa: DTZ005  # the user's own time
    folder = (request.output / run).resolve()
    _make_folder(folder)
    airports = str(request.airports.resolve()) if request.airports else None
    url = request.url or f"embedded://{folder}/broker.db"
    return DemoSettings(str(folder), url, airports, batch=min(max(total // 8, 50), 10_000), run=run)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise InvalidOptionError(f"--output: {folder} cannot be made: {error.strerror}.") from error


@contextmanager
def _broker(settings: DemoSettings) -> Generator[Admin]:
    """Connect, see that the queues are empty, and subscribe before anything is published."""
    with ConnectionFactory(settings.url, client_id=CLIENT_ID).create_connection() as connection:
        admin, shown = connection.admin, ConnectionURL.parse(settings.url)  # without its password
        if admin is None:
            raise NotSupportedError(f"--url {shown}: the demo needs a broker that tells how deep its queues are.")
        for source in (FLIGHTS, DEAD_LETTERS, Subscription(RESULTS, AUDIT, CLIENT_ID), _WAITING):
            if admin.depth(source).total:
                raise InvalidOptionError(f"--url {shown} holds messages of {source} already; name another broker.")
        with connection.create_session() as session:
            for name in (AUDIT, TOTALS):
                session.create_durable_consumer(RESULTS, name)
        yield admin
