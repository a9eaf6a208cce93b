"""Opening connections: URL, credentials and provider combined, failover, and retry with back-off."""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from jmsjca.config import SYSTEM_CLOCK, Address, Clock, ConnectionURL, Credentials, Limits
from jmsjca.config.text import check_text
from jmsjca.errors import (
    ConfigurationError,
    ConnectionLostError,
    InvalidClientIDError,
    InvalidSelectorError,
    JMSError,
    JMSSecurityError,
    NotSupportedError,
)
from jmsjca.providers import find_provider
from jmsjca.spi import Connection

__all__ = ["ConnectionSettings", "FailoverConnector", "Wait", "connect", "is_transient", "retry_with_backoff"]

logger = logging.getLogger("jmsjca.reconnection")

Wait = Callable[[threading.Event, float], object]
"""Waits for an event, for so many seconds; true if it is set."""

_Lost = Callable[[JMSError], None]

_SHOWN = 300  # characters of what one host said
_BACKOFF = (1, 2, 5, 5, 10)  # seconds; the last one for ever

_PERMANENT = (ConfigurationError, InvalidSelectorError, JMSSecurityError, NotSupportedError, ImportError)


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """All that a connection is made from. Opens nothing.

    Args:
        url: The broker.
        user_name: Who connects; None for the user name in the URL.
        password: The password of ``user_name``; ignored without one.
        client_id: The client id.
        limits: The bounds.
        clock: Where time comes from.
        wait: How an activation waits.
    """

    url: str = field(repr=False)  # may hold a password
    user_name: str | None = None
    password: str | None = field(default=None, repr=False)
    client_id: str | None = None
    limits: Limits = field(default_factory=Limits)
    clock: Clock = field(default=SYSTEM_CLOCK, repr=False)
    wait: Wait = field(default=threading.Event.wait, repr=False)

    def check(self, url: ConnectionURL) -> None:
        """Refuse texts that no broker can be told.

        Raises:
            ConfigurationError: One is no Unicode text, or holds NUL, with which some libraries end it.
        """
        who = self.credentials(url)
        login = {"user name": who.user_name, "password": who.password} if who else {}
        for name, text in {**login, "client id": self.client_id}.items():
            check_text(text, f"The {name}", ConfigurationError)

    def credentials(self, url: ConnectionURL) -> Credentials | None:
        """The pair to connect with: the dedicated one, else that of the URL."""
        if self.user_name:
            return Credentials(self.user_name, self.password)
        return Credentials(url.user_name, url.password) if url.user_name else None


class FailoverConnector:
    """Makes one connection after the other: each attempt begins with the host behind the one that was reached last.

    So a host that takes connections and then fails does not keep its clients from the others.

    Args:
        settings: What the connections are made from.
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        self._next = 0

    def connect(self, on_lost: _Lost | None = None, should_continue: Callable[[], bool] = lambda: True) -> Connection:
        """Make one connection, in one attempt: to the first host that lets us in.

        Args:
            on_lost: Told when the connection breaks.
            should_continue: Asked before each further host; false to leave the others alone.

        Raises:
            ConfigurationError: The URL cannot be used, or the user name, the password or the client id.
            ConnectionLostError: No host of a fail-over list can be reached; the message tells why for each.
            JMSError: The broker cannot be reached, or refuses.
        """
        url = ConnectionURL.parse(self._settings.url).for_provider()
        self._settings.check(url)
        failures: dict[Address, JMSError] = {}
        for position, turn in enumerate(url.rotations(self._next), self._next + 1):
            if failures and not should_continue():
                break
            connection = self._try_host(turn, on_lost or _ignore, failures)
            if connection is not None:
                self._next = position % len(url.addresses)
                return connection
        raise ConnectionLostError(f"No host of {url} can be reached: {_describe(failures)}") from [*failures.values()][
            -1
        ]

    def _try_host(self, url: ConnectionURL, lost: _Lost, failures: dict[Address, JMSError]) -> Connection | None:
        """Connect to the host that comes first; None if that fails in a way that lets the next one be tried."""
        settings, end = self._settings, _LossRelay(lost)
        try:
            connection = find_provider(url.protocol).connect(
                url,
                settings.credentials(url),
                client_id=settings.client_id,
                limits=settings.limits,
                clock=settings.clock,
                on_lost=end.report,
            )
        except JMSError as error:
            if not url.others:
                raise
            failures[url.addresses[0]] = error
            if _allows_failover(error):
                return None
            error.add_note(f"Hosts that were tried, this one last: {_describe(failures)}")
            raise
        end.connected()
        if url.others:
            logger.info("Connected to %s://%s.", url.protocol, url.addresses[0])
        return connection


def connect(settings: ConnectionSettings, on_lost: _Lost | None = None) -> Connection:
    """Make one connection, in one attempt, which begins with the first host of a fail-over list.

    Args:
        settings: What it is made from.
        on_lost: Told when the connection breaks.

    Raises:
        JMSError: As `Connector.connect`.
    """
    return FailoverConnector(settings).connect(on_lost)


def retry_with_backoff(
    act: Callable[[], None],
    stopping: threading.Event,
    failed: Callable[[BaseException, int, float], None],
    wait: Wait = threading.Event.wait,
) -> None:
    """Do something, and again after 1, 2, 5, 5, 10, 10, … seconds, give or take a fifth, until it succeeds.

    The waits differ a little each time, so that the many who lost one broker do not all come back at once.

    Args:
        act: What to do.
        stopping: Ends the attempts when it is set, also during a wait.
        failed: Told of each failure, the number of the attempt, beginning with 1, and the seconds to the next one.
        wait: Waits for an event, for so many seconds.

    Raises:
        JMSError: Trying again cannot help.
    """
    import tenacity  # noqa: PLC0415  # only endpoints need it

    def tell(state: tenacity.RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        if error is not None:
            failed(error, state.attempt_number, state.upcoming_sleep)

    def sleep(seconds: float) -> None:
        wait(stopping, seconds)

    attempts = tenacity.Retrying(
        retry=tenacity.retry_if_exception(is_transient),
        wait=tenacity.wait_chain(*(tenacity.wait_random(0.8 * seconds, 1.2 * seconds) for seconds in _BACKOFF)),
        sleep=sleep,
        stop=tenacity.stop_when_event_set(stopping),
        before_sleep=tell,
        reraise=True,
    )
    try:
        attempts(lambda: None if stopping.is_set() else act())
    except JMSError as error:
        if not (stopping.is_set() and is_transient(error)):
            raise


def is_transient(error: BaseException) -> bool:
    """Tell whether trying again can help."""
    return isinstance(error, JMSError) and not isinstance(error, _PERMANENT)


def _describe(failures: Mapping[Address, JMSError]) -> str:
    return "; ".join(f"{address}: {error}"[:_SHOWN] for address, error in failures.items())


def _allows_failover(error: JMSError) -> bool:
    """Tell whether another host of a fail-over list may be tried: this one is out of reach, or not ready.

    A login or a certificate that is refused ends the attempt: neither gets better by asking elsewhere. So does a client
    id that another connection has: one subscription would be on two brokers.
    """
    return is_transient(error) and not isinstance(error, InvalidClientIDError)


def _ignore(error: JMSError) -> None:
    del error


class _LossRelay:
    """The end of one connection. It is told once the connection is there; why an attempt failed is raised.

    Else a provider's word on the host before would be taken for the end of the connection that was made instead.

    Args:
        on_lost: Whom to tell.
    """

    def __init__(self, lost: _Lost) -> None:
        self._lost = lost
        self._lock = threading.Lock()
        self._made = False
        self._untold: list[JMSError] = []

    def report(self, error: JMSError) -> None:
        """It has come."""
        with self._lock:
            if not self._made:
                self._untold.append(error)
                return
        self._lost(error)

    def connected(self) -> None:
        """The connection was made."""
        with self._lock:
            self._made = True
        for error in self._untold:
            self._lost(error)
