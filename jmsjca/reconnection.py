"""Opens connections: settings, fail-over between hosts, and retry with back-off."""

import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, runtime_checkable

from jmsjca.config.clock import SYSTEM_CLOCK, Clock
from jmsjca.config.connection_url import (
    Address,
    ConnectionURL,
    Credentials,
    CredentialSource,
    absolute_url,
    check_text,
    decode_password,
    is_url,
    resolve_source,
)
from jmsjca.config.limits import Limits
from jmsjca.errors import (
    ConfigurationError,
    ConnectionLostError,
    InvalidClientIDError,
    InvalidSelectorError,
    JMSError,
    JMSSecurityError,
    NotSupportedError,
    ResourceAllocationError,
    WrongProtocolError,
)
from jmsjca.log_records import get_logger
from jmsjca.providers import find_provider
from jmsjca.spi import Connection

__all__ = [
    "ConnectionSettings",
    "FailoverConnector",
    "LastResource",
    "Wait",
    "connect",
    "exhaustion_reported",
    "is_transient",
    "retry_with_backoff",
]

logger = get_logger("jmsjca.reconnection")


@runtime_checkable
class LastResource(Protocol):
    """The database that decides the prepared units of connections: `jmsjca.transactions.LastResource`."""

    @property
    def prepared(self) -> int:
        """The number of prepared units that the latest look has found."""
        ...

    def identity(self) -> bytes:
        """Return the identity of the database."""
        ...

    def watch(self, connection: Connection) -> None:
        """Decide the units of a connection, and recover prepared ones while it is open."""
        ...


Wait = Callable[[threading.Event, float], object]
"""Waits for an event with a timeout in seconds. Returns True if the event is set."""

_Lost = Callable[[JMSError], None]

_MAX_TEXT = 300  # characters of one host's error
_BACKOFF = (1, 2, 5, 5, 10)  # seconds; the last one is repeated

_PERMANENT = (ConfigurationError, InvalidSelectorError, JMSSecurityError, NotSupportedError, ImportError)


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Parameters of a connection. Creating them does not connect.

    Args:
        url: URL of the broker.
        user_name: User name; None for the one in the URL.
        password: Password of ``user_name``; ignored without a user name.
        client_id: Client id; None for no client id.
        limits: Bounds of the connection.
        clock: Source of the time.
        wait: Function by which an activation waits between attempts.
        source: Source of the credentials, read at each attempt; None for the user name and the password.
        last_resource: Decides units that the broker prepares; None for units that commit in one phase.
    """

    url: str = field(repr=False)  # may hold a password
    user_name: str | None = field(default=None, repr=False)  # may be a URL with a password
    password: str | None = field(default=None, repr=False)
    client_id: str | None = None
    limits: Limits = field(default_factory=Limits)
    clock: Clock = field(default=SYSTEM_CLOCK, repr=False)
    wait: Wait = field(default=threading.Event.wait, repr=False)
    source: CredentialSource | None = field(default=None, repr=False)
    last_resource: LastResource | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", absolute_url(self.url))

    def credentials(self, url: ConnectionURL) -> Credentials | None:
        """Return the configured credentials, else the credentials in the URL; None for an anonymous connection.

        Raises:
            ConfigurationError: A text is not valid Unicode, or contains NUL, where some libraries truncate it; the user
                name is a URL; or the source of the credentials is incomplete.
            ResourceAllocationError: The source of the credentials fails.
        """
        credentials = self._credentials(url)
        login = {"user name": credentials.user_name, "password": credentials.password} if credentials else {}
        for name, text in {**login, "client id": self.client_id}.items():
            check_text(text, f"The {name}", ConfigurationError)
        if credentials and is_url(credentials.user_name):  # the message must not show it: it may contain a password
            raise ConfigurationError(
                "The user name is a URL: only connection factories accept that; use connection_url."
            )
        return credentials

    def _credentials(self, url: ConnectionURL) -> Credentials | None:
        if self.source is not None:
            return resolve_source(self.source, self.user_name)
        if self.user_name:
            return Credentials(self.user_name, decode_password(self.password))
        return Credentials(url.user_name, decode_password(url.password)) if url.user_name else None


class FailoverConnector:
    """Opens connections over a fail-over list. Each attempt begins with the host after the last one that was reached.

    Otherwise a host that accepts connections and then fails would keep its clients away from the other hosts.

    Args:
        settings: Parameters of the connections.
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        self._next = 0

    def connect(self, on_lost: _Lost | None = None, should_continue: Callable[[], bool] = lambda: True) -> Connection:
        """Open a connection to the first host that accepts it, in one attempt.

        Args:
            on_lost: Called with the error when the connection breaks.
            should_continue: Called before each further host; returns False to stop the attempt.

        Raises:
            ConfigurationError: The URL, the user name, the password or the client id is invalid.
            ConnectionLostError: No host of a fail-over list can be reached; the message has the error of each host.
            JMSError: The broker cannot be reached, or refuses the connection.
        """
        url = ConnectionURL.parse(self._settings.url).for_provider()
        credentials = self._settings.credentials(url)
        failures: dict[Address, JMSError] = {}
        for position, turn in enumerate(url.rotations(self._next), self._next + 1):
            if failures and not should_continue():
                break
            connection = self._try_host(turn, credentials, on_lost or _ignore, failures)
            if connection is not None:
                self._next = position % len(url.addresses)
                return connection
        raise ConnectionLostError(f"No host of {url} can be reached: {_describe(failures)}") from [*failures.values()][
            -1
        ]

    def _try_host(
        self, url: ConnectionURL, credentials: Credentials | None, lost: _Lost, failures: dict[Address, JMSError]
    ) -> Connection | None:
        """Connect to the first host of a URL. Return None after a failure that allows fail-over to the next host."""
        relay = _LossRelay(lost)
        try:
            connection = _open(self._settings, url, credentials, relay.report)
        except JMSError as error:
            if not url.others:
                raise
            failures[url.addresses[0]] = error
            if _allows_failover(error):
                return None
            error.add_note(f"Hosts that were tried, this one last: {_describe(failures)}")
            raise
        relay.connected()
        if url.others:
            logger.info("Connected to %s://%s.", url.protocol, url.addresses[0])
        return connection


def connect(settings: ConnectionSettings, on_lost: _Lost | None = None) -> Connection:
    """Open a connection, in one attempt that begins with the first host of a fail-over list.

    Args:
        settings: Parameters of the connection.
        on_lost: Called with the error when the connection breaks.

    Raises:
        JMSError: As `FailoverConnector.connect`.
    """
    return FailoverConnector(settings).connect(on_lost)


def reach_hosts(settings: ConnectionSettings) -> Iterator[tuple[Address, JMSError | None]]:
    """Connect to each host of a fail-over list alone, and yield its address and its error; None if it accepts clients.

    Args:
        settings: Parameters of the connections.

    Raises:
        ConfigurationError: The URL, the user name, the password or the client id is invalid.
    """
    url = ConnectionURL.parse(settings.url).for_provider()
    credentials = settings.credentials(url)
    for address in url.addresses:
        alone = replace(url, host=address.host, port=address.port, others=())
        try:
            _open(settings, alone, credentials, _ignore).close()
        except JMSError as error:
            yield address, error
        else:
            yield address, None


def retry_with_backoff(
    act: Callable[[], None],
    stopping: threading.Event,
    failed: Callable[[BaseException, int, float], None],
    wait: Wait = threading.Event.wait,
) -> None:
    """Call a function until it succeeds, with waits of 1, 2, 5, 5, 10, 10, … seconds between the attempts.

    Each wait varies at random by up to a fifth, so that the clients of a failed broker do not all reconnect at once.

    Args:
        act: The function.
        stopping: Ends the attempts when it is set, also during a wait.
        failed: Called after each failure with the error, the number of the attempt (from 1) and the seconds to the
            next attempt.
        wait: Waits for an event with a timeout in seconds.

    Raises:
        JMSError: The error is permanent.
    """
    import tenacity  # only listeners need it

    def _report(state: tenacity.RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        if error is not None:
            failed(error, state.attempt_number, state.upcoming_sleep)

    def _sleep(seconds: float) -> None:
        wait(stopping, seconds)

    attempts = tenacity.Retrying(
        retry=tenacity.retry_if_exception(is_transient),
        wait=tenacity.wait_chain(*(tenacity.wait_random(0.8 * seconds, 1.2 * seconds) for seconds in _BACKOFF)),
        sleep=_sleep,
        stop=tenacity.stop_when_event_set(stopping),
        before_sleep=_report,
        reraise=True,
    )
    try:
        attempts(lambda: None if stopping.is_set() else act())
    except JMSError as error:
        if not (stopping.is_set() and is_transient(error)):
            raise


def is_transient(error: BaseException) -> bool:
    """Return whether another attempt can succeed."""
    return isinstance(error, JMSError) and not isinstance(error, _PERMANENT)


@contextmanager
def exhaustion_reported(name: str) -> Generator[None]:
    """Raise a transient error if the system refuses another thread, or memory is exhausted.

    Args:
        name: The subject of the error message, which needs the thread or the memory.

    Raises:
        ResourceAllocationError: The system refused a thread or memory.
    """
    try:
        yield
    except MemoryError as error:
        raise ResourceAllocationError(f"{name} gets no more memory from the system.") from error
    except RuntimeError as error:
        if "can't start new thread" not in str(error):
            raise
        text = f"{name} needs a thread, and the system starts no more: its limit of threads or its memory is exhausted."
        raise ResourceAllocationError(text) from error


def _open(
    settings: ConnectionSettings, url: ConnectionURL, credentials: Credentials | None, on_lost: _Lost
) -> Connection:
    provider, last_resource = find_provider(url.protocol), settings.last_resource
    two_phase = None if last_resource is None else getattr(provider, "connect_two_phase", None)
    connect = provider.connect
    if last_resource is not None and two_phase is not None:
        connect = partial(two_phase, decider=last_resource.identity())
    connection = connect(
        url,
        credentials,
        client_id=settings.client_id,
        limits=settings.limits,
        clock=settings.clock,
        on_lost=on_lost,
    )
    if last_resource is not None:
        last_resource.watch(connection)
    return connection


def _describe(failures: Mapping[Address, JMSError]) -> str:
    return "; ".join(f"{address}: {error}"[:_MAX_TEXT] for address, error in failures.items())


def _allows_failover(error: JMSError) -> bool:
    """Return whether to try the next host of a fail-over list, because this host is unreachable or not ready.

    A host that speaks another protocol also counts as not ready: the next host may speak the right one.

    A refused login or certificate ends the attempt, because the other hosts would also refuse it. A client id that
    another connection uses also ends it: with fail-over, the subscription would exist on two brokers.
    """
    if isinstance(error, WrongProtocolError):
        return True
    return is_transient(error) and not isinstance(error, InvalidClientIDError)


def _ignore(error: JMSError) -> None:
    del error


class _LossRelay:
    """Reports the loss of a connection, but only once the connection is established.

    A failed attempt already raises its error. If that error were also reported, it would be mistaken for the loss of
    the connection that a later attempt establishes.

    Args:
        on_lost: Called with the error when the connection breaks.
    """

    def __init__(self, on_lost: _Lost) -> None:
        self._on_lost = on_lost
        self._lock = threading.Lock()
        self._established = False
        self._early: list[JMSError] = []

    def report(self, error: JMSError) -> None:
        """Report the loss, now or once the connection is established."""
        with self._lock:
            if not self._established:
                self._early.append(error)
                return
        self._on_lost(error)

    def connected(self) -> None:
        """Mark the connection as established, and report a loss that occurred before this call."""
        with self._lock:
            self._established = True
        for error in self._early:
            self._on_lost(error)
