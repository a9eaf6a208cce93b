"""Health for orchestrators: an ASGI application, a small HTTP server, and a file for probes by exit status.

Readiness means that messages can flow. Liveness fails only if a new process may help. A broker that is down does not
affect it, because restarting the clients would not help.
"""

import json
import os
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from jmsjca.errors import ConfigurationError
from jmsjca.log_records import exc_info_of, get_logger

if TYPE_CHECKING:
    from jmsjca.adapter import ResourceAdapter

__all__ = ["HealthFile", "HealthServer", "Report", "app_for", "read_health_file"]

Report = Mapping[str, object]
"""The result of `Health.as_dict`, or of several processes: ``ready`` and ``alive`` decide."""

logger = get_logger("jmsjca.management")

_Scope = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_Application = Callable[[_Scope, _Receive, _Send], Awaitable[None]]

_READY, _LIVE = "/ready", "/live"
_KEYS = {_READY: "ready", _LIVE: "alive"}
_METRICS, _METRICS_TYPE = "/metrics", "text/plain; version=0.0.4; charset=utf-8"
_METHODS, _JSON = ("GET", "HEAD"), "application/json"
_OK, _NOT_FOUND, _METHOD_NOT_ALLOWED, _UNAVAILABLE = 200, 404, 405, 503
_MAX_CONNECTIONS = 64
_MAX_CHECK_SECONDS = 20.0  # per check; a server's connection lasts longer
_MAX_SECONDS = 30.0  # per connection, so that a slow client does not occupy a place forever


def app_for(adapter: "ResourceAdapter", interval: float = 30.0) -> _Application:
    """Return an ASGI application with the routes ``/ready`` and ``/live``: status 200 or 503, and the health as JSON.

    The check runs on a thread, so a blocked broker does not block the event loop. A check that exceeds ``interval``
    seconds counts as neither ready nor alive. No further check starts before it ends.

    Args:
        adapter: The adapter.
        interval: As for `ResourceAdapter.health`.
    """
    check = _SharedCheck(lambda: adapter.health(interval).as_dict(), interval)

    async def _application(scope: _Scope, receive: _Receive, send: _Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            path = scope["path"].removeprefix(scope.get("root_path", ""))
            refused = _refusal(scope["method"], path)
            status, body = refused or _response(path, await check.report_async())
            await _respond(send, status, b"" if scope["method"] == "HEAD" else body, len(body))

    return _application


_DEAD = {"ready": False, "alive": False}


class _SharedCheck:
    """Runs a check on a thread, one at a time: a probe that arrives during a check gets the result of that check.

    Otherwise the probes during a blocked check would each add a thread. The thread is a daemon, because an executor's
    thread would block the exit of the application.

    Args:
        check: Returns the health.
        limit: Seconds after which a check counts as stuck.
    """

    def __init__(self, check: Callable[[], Report], limit: float) -> None:
        self._check, self._limit = check, limit
        self._lock = threading.Lock()
        self._current: Future[Report] | None = None
        self._begun_at = 0.0

    def report(self) -> Report:
        """Wait for the result of a check, and return it."""
        running, seconds = self._join()
        wait([running], seconds)
        return running.result() if running.done() else self._stuck()

    async def report_async(self) -> Report:
        """Wait for the result of a check without blocking the event loop, and return it."""
        import asyncio  # already loaded in an ASGI application

        running, seconds = self._join()
        try:
            return await asyncio.wait_for(asyncio.wrap_future(running), seconds)
        except TimeoutError:
            return running.result() if running.done() else self._stuck()

    def _join(self) -> tuple[Future[Report], float]:
        """Return the running check, or start one; and the seconds until it counts as stuck."""
        with self._lock:
            if self._current is None or self._current.done():
                self._current = self._begin()
                self._begun_at = time.monotonic()
            return self._current, max(self._begun_at + self._limit - time.monotonic(), 0.0)

    def _begin(self) -> Future[Report]:
        begun: Future[Report] = Future()
        begun.set_running_or_notify_cancel()  # from now on a cancelled probe cannot cancel the check
        threading.Thread(target=self._run, args=(begun,), name="jmsjca health check", daemon=True).start()
        return begun

    def _run(self, begun: Future[Report]) -> None:
        try:
            begun.set_result(self._check())
        except Exception as error:  # noqa: BLE001  # the probes raise it
            begun.set_exception(error)

    def _stuck(self) -> Report:
        return {"status": "stuck", "reason": f"the check takes longer than {self._limit:g} s", **_DEAD}


async def _lifespan(receive: _Receive, send: _Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def _respond(send: _Send, status: int, body: bytes, length: int) -> None:
    headers = [(name.lower().encode(), value.encode()) for name, value in _headers(length).items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _headers(length: int, kind: str = _JSON) -> dict[str, str]:
    return {"Content-Type": kind, "Content-Length": str(length), "Cache-Control": "no-store"}


def _refusal(method: str, path: str) -> tuple[int, bytes] | None:
    if path not in _KEYS:
        return _NOT_FOUND, _encoded({"error": f"There are {_READY} and {_LIVE} here."})
    if method not in _METHODS:
        return _METHOD_NOT_ALLOWED, _encoded({"error": "Use GET or HEAD."})
    return None


def _response(path: str, report: Report) -> tuple[int, bytes]:
    return _OK if report[_KEYS[path]] else _UNAVAILABLE, _encoded(report)


def _encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


class HealthServer:
    """Serves ``/ready`` and ``/live`` over HTTP, for programs without an ASGI server. Use it as a context manager.

    It has no login: the health names destinations and errors. It answers 64 connections at a time, each for at most
    30 seconds. A further connection replaces an unfinished request: the oldest one from the address that has most of
    them. So slow clients cannot block probes. A check that does not end within 20 seconds counts as neither ready nor
    alive.

    Args:
        check: Returns the health. Called on a separate thread, by one request at a time.
        port: The port; 0 for a free one.
        host: Address to listen on. Kubernetes probes over the network, so use "0.0.0.0" there.
        metrics: Returns the text of ``/metrics`` for Prometheus; None omits the route.

    Raises:
        ConfigurationError: The port cannot be used.

    Attributes:
        port: The port in use.
    """

    def __init__(
        self,
        check: Callable[[], Report],
        port: int = 0,
        host: str = "127.0.0.1",
        metrics: Callable[[], bytes] | None = None,
    ) -> None:
        shared = _SharedCheck(check, _MAX_CHECK_SECONDS)
        try:
            self._server = _BoundedServer((host, port), partial(_RequestHandler, shared.report, metrics))
        except (OSError, OverflowError) as error:
            raise ConfigurationError(f"The health port {host}:{port} cannot be used: {error}. Name another.") from error
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, name="jmsjca health", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _BoundedServer(ThreadingHTTPServer):
    """An HTTP server that bounds the number of connections and the duration of each."""

    daemon_threads = True
    request_queue_size = _MAX_CONNECTIONS  # with the default of 5, many connections at once delay a probe by seconds

    def __init__(self, address: tuple[str, int], handler: Callable[..., BaseHTTPRequestHandler]) -> None:
        self._opened: dict[socket.socket, float] = {}
        self._sending: dict[socket.socket, str] = {}  # connections without a complete request, and their addresses
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection on a separate thread; if too many are open, first end a slow one."""
        if len(self._opened) >= _MAX_CONNECTIONS and not self._end_slowest():
            self.shutdown_request(request)
            return
        self._opened[request] = time.monotonic()
        self._sending[request] = client_address[0]
        super().process_request(request, client_address)

    def _end_slowest(self) -> bool:
        """End the oldest unfinished request from the address that has most of them; return False if there are none."""
        sending = list(self._sending.items())
        if not sending:
            return False
        [(address, _)] = Counter(address for _, address in sending).most_common(1)
        slowest = next(request for request, its_address in sending if its_address == address)
        self._forget(slowest)
        with suppress(OSError):  # closed in the same moment
            slowest.shutdown(socket.SHUT_RDWR)
        return True

    def request_read(self, request: socket.socket) -> None:
        """Record that the request is complete: its connection is not replaced any more."""
        self._sending.pop(request, None)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        self._forget(request)
        super().shutdown_request(request)

    def _forget(self, request: socket.socket) -> None:
        self._opened.pop(request, None)
        self._sending.pop(request, None)

    def service_actions(self) -> None:
        """End connections that last too long. Their threads see the end of the stream, and close them."""
        oldest = time.monotonic() - _MAX_SECONDS
        for request in [each for each, opened in list(self._opened.items()) if opened < oldest]:
            with suppress(OSError):  # closed in the same moment
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error of the check. A disconnected client is not an error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _RequestHandler(BaseHTTPRequestHandler):
    def __init__(self, check: Callable[[], Report], metrics: Callable[[], bytes] | None, *connection: Any) -> None:
        self._check, self._metrics = check, metrics
        super().__init__(*connection)  # answers the request

    def do_GET(self) -> None:  # the name that http.server calls
        """Answer a request."""
        self._answer()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815  # names that http.server calls

    def version_string(self) -> str:
        """Return the server name, without versions."""
        return "jmsjca"

    def log_message(self, *_: object, **__: object) -> None:
        """Do nothing: an access log would grow every few seconds, with each probe."""

    def _answer(self) -> None:
        cast("_BoundedServer", self.server).request_read(self.connection)
        path = self.path.partition("?")[0]
        if path == _METRICS and self._metrics is not None and self.command in _METHODS:
            status, body, kind = _OK, self._metrics(), _METRICS_TYPE
        else:
            status, body = _refusal(self.command, path) or _response(path, self._check())
            kind = _JSON
        self.send_response(status)
        for name, value in _headers(len(body), kind).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class HealthFile:
    """Writes the health of an adapter to a file periodically, for a probe by exit status: ``jmsjca status --file``.

    A process that hangs, is stopped or was killed does not write, so a file that is too old is also a failure. A later
    failure of a check or a write is logged, and retried. Use it as a context manager.

    Args:
        check: Returns the health.
        path: The file. It is replaced atomically, so readers never see a part of it.
        interval: As for `ResourceAdapter.health`. The file is written at least five times per interval.

    Raises:
        ConfigurationError: The file cannot be written.
    """

    def __init__(self, check: Callable[[], Report], path: str | Path, interval: float = 30.0) -> None:
        self._check = check
        self._path = Path(path)
        self._interval = interval
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jmsjca health file", daemon=True)

    def write(self) -> None:
        """Write the file once."""
        report = {**self._check(), "pid": os.getpid(), "written": time.time(), "interval": self._interval}
        beside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        beside.write_bytes(_encoded(report))
        beside.replace(self._path)

    def __enter__(self) -> Self:
        try:
            self.write()
        except OSError as error:
            raise ConfigurationError(
                f"The health file {self._path} cannot be written: {error}. Name another."
            ) from error
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._path.unlink(missing_ok=True)

    def _run(self) -> None:
        failing = False
        while not self._stopped.wait(min(self._interval / 5, 1.0)):
            try:
                self.write()
            except Exception as error:  # noqa: BLE001  # from the check or the disk, possibly temporary
                self._report(error, again=failing)
                failing = True
            else:
                failing = False

    def _report(self, error: Exception, *, again: bool) -> None:
        """Log the first of several consecutive failures; for a failed check with its traceback."""
        if not again:
            traceback = None if isinstance(error, OSError) else exc_info_of(error)
            text = "The health file %s cannot be written, trying again: %s: %s"
            logger.warning(text, self._path, type(error).__name__, error, exc_info=traceback)


def read_health_file(path: str | Path, now: float | None = None) -> Report:
    """Read the file of a `HealthFile`. Its age must not exceed its limit, in either direction, to be ready and alive.

    Args:
        path: The file.
        now: Time in seconds since the epoch; None for the current time.

    Raises:
        ConfigurationError: There is no such file, or it is not a health file.
    """
    try:
        report = cast("dict[str, Any]", json.loads(Path(path).read_bytes()))
        age, interval = (time.time() if now is None else now) - report["written"], report["interval"]
        report |= {name: report[name] for name in ("status", "ready", "alive")}  # KeyError if one is missing
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(
            f"{path} is not a health file ({type(error).__name__}): is the worker running with --health-file {path}?"
        ) from error
    if not abs(age) <= interval:  # also catches NaN
        since = f"for {age:.0f} s" if age > 0 else f"since the clock was set back by {-age:.0f} s"
        reason = f"the process {report.get('pid')} has not written the file {since}"
        return {**report, "status": "stuck", "reason": reason, **_DEAD}
    return report
