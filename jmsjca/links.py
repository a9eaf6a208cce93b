"""Making connections: URL, credentials and provider brought together, again and again where that is wanted."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from jmsjca.config import SYSTEM_CLOCK, Clock, ConnectionURL, Credentials, Limits
from jmsjca.errors import ConfigurationError, JMSError, JMSSecurityError, NotSupportedError
from jmsjca.providers import find_provider
from jmsjca.spi import Connection

__all__ = ["ConnectionSettings", "connect", "connect_persistently", "may_pass"]

logger = logging.getLogger("jmsjca.links")

_FIRST_WAIT = 0.5
_LONGEST_WAIT = 10.0

_PERMANENT = (ConfigurationError, JMSSecurityError, NotSupportedError, ImportError)


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
    """

    url: str = field(repr=False)  # may hold a password
    user_name: str | None = None
    password: str | None = field(default=None, repr=False)
    client_id: str | None = None
    limits: Limits = field(default_factory=Limits)
    clock: Clock = field(default=SYSTEM_CLOCK, repr=False)

    def credentials(self, url: ConnectionURL) -> Credentials | None:
        """The pair to connect with: the dedicated one, else that of the URL."""
        if self.user_name:
            return Credentials(self.user_name, self.password)
        return Credentials(url.user_name, url.password) if url.user_name else None


def connect(settings: ConnectionSettings, lost: Callable[[JMSError], None] | None = None) -> Connection:
    """Make one connection, in one attempt.

    Args:
        settings: What it is made from.
        lost: Told when the connection breaks.

    Raises:
        ConfigurationError: The URL cannot be used.
        JMSError: The broker cannot be reached, or refuses.
    """
    url = ConnectionURL.parse(settings.url).for_provider()
    return find_provider(url.protocol).connect(
        url,
        settings.credentials(url),
        client_id=settings.client_id,
        limits=settings.limits,
        clock=settings.clock,
        lost=lost or _ignore,
    )


def connect_persistently(settings: ConnectionSettings, stopping: threading.Event) -> Connection | None:
    """Make a connection, trying again with growing, jittered waits until it succeeds.

    Args:
        settings: What it is made from.
        stopping: Ends the attempts when it is set.

    Returns:
        The connection; None if the attempts were ended.

    Raises:
        ConfigurationError: Trying again cannot help.
    """
    import tenacity  # noqa: PLC0415  # only endpoints need it

    attempts = tenacity.Retrying(
        retry=tenacity.retry_if_exception(may_pass),
        wait=tenacity.wait_random_exponential(multiplier=_FIRST_WAIT, max=_LONGEST_WAIT),
        sleep=tenacity.sleep_using_event(stopping),
        stop=tenacity.stop_when_event_set(stopping),
        before_sleep=_log_failure,
        reraise=True,
    )
    try:
        for attempt in attempts:
            with attempt:
                return None if stopping.is_set() else connect(settings)
    except JMSError:
        if stopping.is_set():
            return None
        raise
    return None


def may_pass(error: BaseException) -> bool:
    """Tell whether trying again can help."""
    return isinstance(error, JMSError) and not isinstance(error, _PERMANENT)


def _log_failure(state: "object") -> None:
    outcome = getattr(state, "outcome", None)
    attempt = getattr(state, "attempt_number", 0)
    logger.warning("Attempt %d to connect failed, trying again: %s", attempt, outcome.exception() if outcome else "")


def _ignore(error: JMSError) -> None:
    del error
