"""The connections of an executor's process: one task after the other uses them.

Spark keeps the Python processes of its executors for the next task, and a connection costs several round trips. Between
two tasks a connection has no consumer, so it holds no messages.
"""

import atexit
import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

from jmsjca import spi
from jmsjca.errors import JMSError
from jmsjca.reconnection import ConnectionSettings, connect

__all__ = ["Lease", "close_connections", "leased"]

_MAX_IDLE = 30.0  # seconds: shorter than Spark keeps an idle process, and than most firewalls forget a connection


class Lease:
    """A connection in use.

    Args:
        settings: The settings of the connection.

    Attributes:
        connection: The connection.
        used: The time of the end of the last use.

    Raises:
        JMSError: The broker cannot be reached.
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        self._usable = True
        self.connection: spi.Connection = connect(settings, self._on_lost)
        self.used = time.monotonic()

    def drop(self) -> None:
        """Close the connection after this use, because it failed, or may have released messages."""
        self._usable = False

    @property
    def is_usable(self) -> bool:
        """True if the connection may be used again."""
        return self._usable and time.monotonic() - self.used < _MAX_IDLE

    def _on_lost(self, error: JMSError) -> None:
        """Record that the connection broke, perhaps between two tasks."""
        del error
        self._usable = False


_idle: dict[tuple[int, ConnectionSettings], Lease] = {}


@contextmanager
def leased(settings: ConnectionSettings) -> Generator[Lease]:
    """Lend the connection that an earlier task used, or a new one. It is kept unless the task fails.

    Args:
        settings: The settings of the connection.

    Raises:
        JMSError: The broker cannot be reached.
    """
    key = (os.getpid(), settings)  # a forked process does not have the connections of its parent
    lease = _take(key) or Lease(settings)
    try:
        yield lease
    except BaseException:
        lease.drop()
        raise
    finally:
        _put_back(key, lease)


def close_connections() -> None:
    """Close the connections that no task uses."""
    for key in [key for key in _idle if key[0] == os.getpid()]:
        _close(_idle.pop(key))


def _take(key: tuple[int, ConnectionSettings]) -> Lease | None:
    lease = _idle.pop(key, None)
    if lease is not None and not lease.is_usable:
        _close(lease)
        return None
    return lease


def _put_back(key: tuple[int, ConnectionSettings], lease: Lease) -> None:
    lease.used = time.monotonic()
    if lease.is_usable and key not in _idle:
        _idle[key] = lease
    else:
        _close(lease)


def _close(lease: Lease) -> None:
    with suppress(JMSError):  # at the end of the process the provider may have closed it
        lease.connection.close()


atexit.register(close_connections)
