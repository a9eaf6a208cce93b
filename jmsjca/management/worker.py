"""A worker: serves an adapter in this process, or supervises several processes that serve it."""

import itertools
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from importlib import import_module, invalidate_caches
from inspect import signature
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Self

from jmsjca.adapter import ResourceAdapter
from jmsjca.arguments import TIMEOUT
from jmsjca.config.configuration_file import import_problem, read_configuration
from jmsjca.errors import ConfigurationError, JMSError, ProviderNotInstalledError, excerpt
from jmsjca.inbound.activation_state import StatusMonitor
from jmsjca.inbound.health import INTERVAL
from jmsjca.inbound.shutdown import StopReport, serve
from jmsjca.log_records import get_logger
from jmsjca.management.health import HealthFile, HealthServer, Report, read_health_file
from jmsjca.management.metrics import exposition

if TYPE_CHECKING:
    from types import FrameType

    from jmsjca.connector import Connector

__all__ = [
    "Supervisor",
    "WorkerSettings",
    "account_of",
    "load_adapter",
    "load_adapters",
    "load_connectors",
    "load_work",
    "serve_work",
    "write_log_records",
]

logger = get_logger("jmsjca.management")

_BACKOFF = (0.5, 1.0, 2.0, 5.0, 10.0)  # seconds before a restart; the last one is repeated
_STABLE_AFTER = 30.0  # seconds; a process that ran this long is restarted without back-off
_TICK = 0.2
_GRACE = 10.0  # seconds between the deadline of a process and SIGKILL
_FILE = re.compile(r"(?P<file>.+\.toml)(?::(?P<adapter>.+))?", re.DOTALL)
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The settings of a worker.

    Attributes:
        target: The adapter, as for `load_adapter`.
        processes: Number of processes.
        timeout: Seconds from the first signal to the deadline; None waits for active handlers without a limit.
        interval: As for `ResourceAdapter.health`.
        health_port: Port of ``/ready`` and ``/live``; None disables them.
        health_host: Address to listen on.
        health_file: File for ``jmsjca status``; None writes no file.
        log_level: Lowest level of log records that are written; None keeps the level of the program.
        reload: True to restart the processes when a source file below the current folder, or the configuration file of
            the target, has changed.

    Raises:
        InvalidArgumentError: The timeout or the interval is not a number of seconds.
    """

    target: str
    processes: int = 1
    timeout: float | None = None
    interval: float = 30.0
    health_port: int | None = None
    health_host: str = "127.0.0.1"
    health_file: Path | None = None
    log_level: str | None = None
    reload: bool = False

    def __post_init__(self) -> None:
        TIMEOUT("timeout", self.timeout)
        INTERVAL("interval", self.interval)


def load_adapter(target: str) -> ResourceAdapter:
    """Import an adapter, or read it from a configuration file. It is not started.

    Args:
        target: ``module:adapter``, or ``module:function`` for a function that returns the adapter; the default name is
            "adapter". Or a configuration file (``FILE.toml``), or one of its adapters (``FILE.toml:NAME``). Modules are
            also searched in the current folder.

    Raises:
        ConfigurationError: The module or the file cannot be loaded, or has no such adapter.
        JMSError: As the module raises it.
    """
    _find_modules_here()
    if (found := _FILE.fullmatch(target)) is not None:
        return _adapter_of(found["file"], found["adapter"])
    return _imported(target)


def load_adapters(target: str) -> Sequence[ResourceAdapter]:
    """Return the adapter of `load_adapter`, or all adapters of a configuration file if the target names none of them.

    Args:
        target: As for `load_adapter`.

    Raises:
        ConfigurationError: As `load_adapter`.
        JMSError: As `load_adapter`.
    """
    if load_connectors(target) and not _has_adapter(target):
        return []
    if (found := _FILE.fullmatch(target)) is None or found["adapter"] is not None:
        return [load_adapter(target)]
    _find_modules_here()
    configuration = read_configuration(found["file"])
    names = list(configuration.adapters) or [configuration.adapter_name()]  # without an adapter, this raises the error
    return [ResourceAdapter.from_configuration(configuration, name) for name in names]


def load_work(target: str) -> tuple[ResourceAdapter | None, Mapping[str, "Connector"]]:
    """Return what a worker serves: an adapter, and the connectors of its configuration file by name.

    Args:
        target: As for `load_adapter`; ``FILE.toml:NAME`` may also name a connector. A file without adapters has only
            connectors, and ``FILE.toml:ADAPTER`` has none.

    Raises:
        ConfigurationError: As `load_adapter`; or a connector is invalid.
        JMSError: As `load_adapter`.
    """
    connectors = load_connectors(target)
    return None if connectors and not _has_adapter(target) else load_adapter(target), connectors


def load_connectors(target: str) -> Mapping[str, "Connector"]:
    """Return the connectors of a target by name. They are not started.

    Args:
        target: As for `load_work`.

    Raises:
        ConfigurationError: As `load_work`.
    """
    if (found := _FILE.fullmatch(target)) is None:
        return {}
    _find_modules_here()
    configuration = read_configuration(found["file"])
    name = found["adapter"]
    names = [each for each in configuration.connectors if name in {None, each} and name not in configuration.adapters]
    if not names:
        return {}
    from jmsjca.connector import Connector

    return {each: Connector.from_config(found["file"], each) for each in names}


def _has_adapter(target: str) -> bool:
    found = _FILE.fullmatch(target)
    return found is None or (found["adapter"] is None and bool(read_configuration(found["file"]).adapters))


def _find_modules_here() -> None:
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    invalidate_caches()


def _adapter_of(file: str, name: str | None) -> ResourceAdapter:
    """Return an adapter of a configuration file. If it was not named, log which other adapters have listeners."""
    configuration = read_configuration(file)
    chosen = configuration.adapter_name(name)
    with_handlers = [each for each in configuration.listeners.values() if each.handler is not None]
    others = {configuration.adapter_name(each.adapter) for each in with_handlers} - {chosen}
    if name is None and others:
        logger.warning(
            "%s has listeners of other adapters than %s, which do not start: %s. Name an adapter as %s:NAME.",
            *(file, chosen, ", ".join(sorted(others)), file),
        )
    return ResourceAdapter.from_configuration(configuration, chosen)


def _imported(target: str) -> ResourceAdapter:
    module, _, name = target.partition(":")
    if module.endswith(".py"):
        shown = excerpt(module.removesuffix(".py").replace(os.sep, "."))
        raise ConfigurationError(f"{excerpt(module)} is a file: name its module, as {shown}:{name or 'adapter'}.")
    try:
        found: Any = import_module(module)
        for part in (name or "adapter").split("."):
            found = getattr(found, part, None)
        if callable(found) and _takes_no_arguments(found):
            found = found()
    except JMSError:
        raise
    except Exception as error:
        raise ConfigurationError(f"{excerpt(module)} cannot be imported: {import_problem(error)}") from error
    if not isinstance(found, ResourceAdapter):
        name = name or "adapter"
        raise ConfigurationError(
            f"{module} has no ResourceAdapter {excerpt(name)!r}: name one as module:name, or a .toml file."
        )
    return found


def _takes_no_arguments(function: Callable[..., object]) -> bool:
    try:
        signature(function).bind()
    except (TypeError, ValueError):  # it needs arguments, or has no signature
        return False
    return True


def write_log_records(level: str | None) -> None:
    """Write log records with time and level to standard error, unless the program has configured logging.

    Args:
        level: Lowest level that is written; None keeps the level of the program ("warning" by default).
    """
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if level is not None:
        logging.root.setLevel(level.upper())


def serve_work(
    adapter: ResourceAdapter | None,
    connectors: Mapping[str, "Connector"],
    settings: WorkerSettings,
    announce: Callable[[], None],
    *,
    supervised: bool = False,
) -> StopReport:
    """Serve an adapter and connectors in this process until SIGINT or SIGTERM.

    Args:
        adapter: The adapter; None for connectors alone.
        connectors: The connectors by name. Each has a thread. If one ends by itself, the worker ends.
        settings: The settings. The number of processes is ignored.
        announce: Called before the adapter starts, after the settings are validated.
        supervised: True to stop also when standard input ends, because then the supervisor was killed.

    Raises:
        ConfigurationError: The health port or file cannot be used; or as `Connector.run`.
        ActivationFailedError: All activations have stopped permanently.
        JMSError: A connector has terminated.
    """
    served = ResourceAdapter() if adapter is None else adapter

    def report() -> Report:
        """Return the health, and what the process is doing."""
        stats = {each.name: each.stats.as_dict() for each in served.activations}
        return {**served.health(settings.interval).as_dict(), "stats": stats}

    if supervised:
        threading.Thread(target=_stop_with_supervisor, name="jmsjca supervisor", daemon=True).start()
    with ExitStack() as stack:
        _open_probes(stack, settings, report, served)
        announce()
        polling = stack.enter_context(_Polling(connectors))
        if adapter is not None:
            stopped = adapter.run(settings.timeout)
        else:
            stopped = serve(lambda: None, lambda _: StopReport(ended=True), None, StatusMonitor(), lambda: False)
        return replace(stopped, ended=polling.stop(settings.timeout) and stopped.ended)


class _Polling:
    """The threads of connectors.

    Args:
        connectors: The connectors by name.
    """

    def __init__(self, connectors: Mapping[str, "Connector"]) -> None:
        self._connectors = connectors.values()
        self._is_stopping = threading.Event()
        self._errors: list[Exception] = []
        self._handler = signal.getsignal(signal.SIGTERM)
        self._threads = [
            threading.Thread(target=self._run, args=[each], name=f"jmsjca connector {name}", daemon=True)
            for name, each in connectors.items()
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(0)

    def stop(self, timeout: float | None) -> bool:
        """Stop the connectors after their current events, and raise the error of a connector that has failed.

        Args:
            timeout: Seconds to wait for the events; None waits forever.

        Returns:
            True if all connectors have ended in time.
        """
        self._is_stopping.set()
        for each in self._connectors:
            each.close()
        deadline = inf if timeout is None else monotonic() + timeout
        for thread in self._threads:
            thread.join(None if timeout is None else max(deadline - monotonic(), 0))
        if self._errors:
            raise self._errors.pop()
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self, connector: "Connector") -> None:
        try:
            connector.run()
        except Exception as error:  # noqa: BLE001  # the main thread raises it
            self._errors.append(error)
        # The signal ends the worker, once the main thread handles signals.
        while signal.getsignal(signal.SIGTERM) is self._handler and not self._is_stopping.is_set():
            sleep(_TICK)
        if not self._is_stopping.is_set():
            os.kill(os.getpid(), signal.SIGTERM)


def _stop_with_supervisor() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _open_probes(
    stack: ExitStack, settings: WorkerSettings, check: Callable[[], Report], adapter: ResourceAdapter | None = None
) -> None:
    if settings.health_port is not None:
        metrics = None
        with suppress(ProviderNotInstalledError):  # without the extra there is no /metrics
            metrics = None if adapter is None else exposition(adapter)
        stack.enter_context(HealthServer(check, settings.health_port, settings.health_host, metrics))
    if settings.health_file is not None:
        stack.enter_context(HealthFile(check, settings.health_file, settings.interval))


class Supervisor:
    """Runs the processes of a worker until SIGINT or SIGTERM, and restarts failed ones with back-off.

    Each process runs ``jmsjca run`` for the same adapter. The supervisor forwards a signal, waits until all processes
    have ended, and kills those that exceed the common deadline. A second signal is also forwarded, and starts a
    deadline. Use the supervisor on the main thread.

    Args:
        settings: The settings.
        report: Called with each event: a text and its fields.
        announce: Called before the processes start, after the settings are validated.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        report: Callable[[str, dict[str, object]], None],
        announce: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._report, self._announce = report, announce
        self._is_stopping = False  # not an Event: a signal handler would wait for the lock that its own thread holds
        self._killed_at = inf  # the deadline of a second signal, in monotonic time
        self._folder = Path()
        self._children: list[_Child] = []

    def run(self) -> list[dict[str, object]]:
        """Supervise until a signal.

        Returns:
            The accounts of the processes that ended after the signal. A killed process has no account.

        Raises:
            ConfigurationError: The health port or file cannot be used. No process was started.
        """
        with TemporaryDirectory(prefix="jmsjca-") as folder, ExitStack() as stack:
            self._folder = Path(folder)
            for number in _SIGNALS:
                stack.callback(signal.signal, number, signal.signal(number, self._request_stop))
            _open_probes(stack, self._settings, self._health)
            self._announce()
            snapshot = self._sources()  # before a process reads them
            self._start_all()
            while not self._is_stopping:
                self._restart_ended()
                if (changed := self._sources()) != snapshot:
                    snapshot = changed
                    if (accounts := self._restart_all()) is not None:
                        return accounts
                sleep(_TICK)
            return self._stop_all()

    def _request_stop(self, number: int, frame: "FrameType | None") -> None:
        del frame
        if self._is_stopping:  # a second signal ends the wait for handlers
            self._killed_at = min(self._killed_at, monotonic() + _GRACE)
            for child in self._children:
                child.signal(number)
        self._is_stopping = True

    def _sources(self) -> dict[Path, float]:
        return _sources(self._settings.target) if self._settings.reload else {}

    def _start_all(self) -> None:
        self._children = [self._start(number) for number in range(self._settings.processes)]

    def _start(self, number: int) -> "_Child":
        child = _Child(self._settings, self._folder / f"{number}.json", number)
        self._report("started", {"process": number, "pid": child.pid})
        return child

    def _restart_ended(self) -> None:
        for position, child in enumerate(self._children):
            if child.status is None:
                continue
            seconds = child.next_pause()
            if not child.announced:
                child.announced = True
                fields: dict[str, object] = {"process": child.number, "pid": child.pid, "status": child.status}
                self._report("ended", {**fields, "restart_in": seconds})
            if child.time_since_end() >= seconds:
                self._children[position] = self._replacement(child)

    def _replacement(self, ended: "_Child") -> "_Child":
        """Start a replacement for an ended process; return the ended one if the system has no resources for it."""
        try:
            following = self._start(ended.number)
        except OSError as error:  # such as too many processes or open files, which may be temporary
            self._report("failed", {"process": ended.number, "error": repr(str(error))})
            ended.begin_pause()
            return ended
        following.failures = 0 if ended.was_stable() else ended.failures + 1
        return following

    def _restart_all(self) -> list[dict[str, object]] | None:
        """Stop and restart all processes. If a signal arrives, return the accounts instead of restarting."""
        self._report("reload", {"processes": len(self._children)})
        accounts = self._stop_all()
        if self._is_stopping:
            return accounts
        self._start_all()
        return None

    def _stop_all(self) -> list[dict[str, object]]:
        """Stop all processes, and return their accounts."""
        for child in self._children:
            child.signal(signal.SIGTERM)
        self._wait_for_all()
        for child in self._children:
            child.signal(signal.SIGKILL)  # no effect on ended processes
        accounts = [child.close() for child in self._children]
        for child, account in zip(self._children, accounts, strict=True):
            self._report("stopped", {"process": child.number, "pid": child.pid, "status": child.status, **account})
        return accounts

    def _wait_for_all(self) -> None:
        """Wait until all processes have ended, or until their common deadline."""
        timeout = self._settings.timeout
        deadline = inf if timeout is None else monotonic() + timeout + _GRACE
        while monotonic() < min(deadline, self._killed_at):
            running = next((child for child in self._children if child.status is None), None)
            if running is None:
                return
            running.wait(_TICK)

    def _health(self) -> Report:
        """Return the health of all processes: ready (alive) only if all are ready (alive)."""
        reports = [self._health_of(child) for child in self._children] or [_down(0, "has not started yet")]
        red = next((each for each in reports if not each["ready"]), None)
        return {
            "status": red["status"] if red else "consuming" if _has(reports, "consuming") else "idle",
            "reason": red["reason"] if red else None,
            "ready": red is None,
            "alive": all(each["alive"] for each in reports),
            "processes": reports,
            "activations": [each for report in reports for each in _activations(report)],
        }

    def _health_of(self, child: "_Child") -> Report:
        if child.status is not None:  # its file may still say that it is ready
            return _down(child.number, f"has ended with the status {child.status}")
        try:
            return {"process": child.number, **read_health_file(child.health_file)}
        except ConfigurationError:
            return _down(child.number, "has not started yet")


def _down(number: int, reason: str) -> Report:
    """Return the health of a process that is not running: alive, because the supervisor restarts it."""
    text = f"process {number} {reason}"
    return {"process": number, "status": "down", "reason": text, "ready": False, "alive": True}


def _has(reports: Sequence[Report], status: str) -> bool:
    return any(each["status"] == status for each in reports)


def _activations(report: Report) -> Iterator[Any]:
    found: Any = report.get("activations") or ()
    yield from found


class _Child:
    """One process of a worker.

    Args:
        settings: The settings of the worker.
        health_file: File that the process writes.
        number: Number of the process.
    """

    def __init__(self, settings: WorkerSettings, health_file: Path, number: int) -> None:
        self.health_file, self.number = health_file, number
        self.failures = 0
        self.announced = False
        health_file.unlink(missing_ok=True)
        self._account_file = health_file.with_suffix(".account")
        self._account_file.unlink(missing_ok=True)
        command = [sys.executable, "-m", "jmsjca", "run", settings.target, "--health-file", str(health_file)]
        command += ["--account-file", str(self._account_file)]
        command += ["--interval", str(settings.interval)]
        command += [] if settings.timeout is None else ["--timeout", str(settings.timeout)]
        command += [] if settings.log_level is None else ["--log-level", settings.log_level]
        # In a separate session: Ctrl+C at the terminal then reaches only the supervisor, which forwards it once.
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603  # ourselves
        self.pid = self._process.pid
        self._started_at = monotonic()
        self._ended_at: float | None = None

    @property
    def status(self) -> int | None:
        """The exit status, negative for a signal; None while the process runs."""
        status = self._process.poll()
        if status is not None and self._ended_at is None:
            self._ended_at = monotonic()
        return status

    def was_stable(self) -> bool:
        """Return True if the process ran long enough to be restarted without back-off."""
        return self._ended_at is not None and self._ended_at - self._started_at >= _STABLE_AFTER

    def next_pause(self) -> float:
        """Return the seconds to wait between the end of the process and its restart."""
        return 0.0 if self.was_stable() else _BACKOFF[min(self.failures, len(_BACKOFF) - 1)]

    def begin_pause(self) -> None:
        """Begin the next, longer pause, after a failed restart."""
        self.failures += 1
        self._started_at = self._ended_at = monotonic()

    def time_since_end(self) -> float:
        """Return the seconds since the process ended."""
        return 0.0 if self._ended_at is None else monotonic() - self._ended_at

    def signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        self._process.send_signal(number)

    def wait(self, seconds: float) -> None:
        """Wait for the end of the process, at most this many seconds."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def close(self) -> dict[str, object]:
        """Wait for the end of the process without a time limit, and return its account."""
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            account: dict[str, object] = json.loads(self._account_file.read_text())
        except (OSError, ValueError):  # killed, or ended by SIGTERM before it handled signals and served anything
            return {"pid": self.pid, **asdict(StopReport(self.status == -signal.SIGTERM))}
        return account


def account_of(report: StopReport) -> dict[str, object]:
    """Return the account of a stop as JSON values."""
    return {"pid": os.getpid(), **asdict(report)}


def _sources(target: str) -> dict[Path, float]:
    """Return the modification times of the target's configuration file and of the Python files below this folder."""
    configuration = _FILE.fullmatch(target)
    found: dict[Path, float] = {}
    for path in itertools.chain([Path(configuration["file"])] if configuration else [], _python_files()):
        with suppress(OSError):  # removed since the listing
            found[path] = path.stat().st_mtime
    return found


def _python_files() -> Iterator[Path]:
    for path in Path.cwd().rglob("*.py"):
        if not any(part.startswith(".") for part in path.relative_to(Path.cwd()).parts):
            yield path
