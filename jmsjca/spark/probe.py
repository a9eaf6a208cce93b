"""How the driver looks at the queue: a connection of its own that takes nothing."""

import logging
import time
from typing import Any

from jmsjca import spi
from jmsjca.errors import ConfigurationError, InvalidDestinationError, JMSError, NotSupportedError
from jmsjca.links import connect
from jmsjca.spark.options import SparkOptions

__all__ = ["Probe"]

logger = logging.getLogger("jmsjca.spark")


class Probe:
    """Opened at the first look, never pickled: readers are copied to every task.

    Args:
        options: The options of the source.
    """

    def __init__(self, options: SparkOptions) -> None:
        self._options = options
        self._connection: spi.Connection | None = None
        self._lost = False
        self._next = 0.0
        self._failing_since: float | None = None

    def has_messages(self) -> bool:
        """Tell whether messages wait, or may wait where nobody can look.

        False also while the broker cannot be reached, for a time.

        Raises:
            JMSError: It could not be reached for longer than the option ``driverRetryTimeout``.
        """
        self.pace()
        try:
            found = self._look(self._open())
        except (ConfigurationError, InvalidDestinationError, NotSupportedError):
            raise
        except JMSError as error:
            self._put_up_with(error)
            return False
        self._failing_since = None
        return found

    def depth(self) -> int | None:
        """Count the messages in the queue; None if the broker does not tell.

        Raises:
            JMSError: The broker cannot be reached.
        """
        admin = self._open().admin()
        return None if admin is None else admin.depth(self._options.target).total

    def pace(self) -> None:
        """Wait: Spark asks as fast as it can, the broker is asked once an interval."""
        time.sleep(max(self._next - time.monotonic(), 0))
        self._next = time.monotonic() + self._options.pollInterval

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_connection": None}

    def _open(self) -> spi.Connection:
        if self._lost:
            self.close()
        if self._connection is None:
            self._lost = False
            self._connection = connect(self._options.settings, self._lose)
        return self._connection

    def _lose(self, error: JMSError) -> None:
        """Told by the connection: where nobody can look, nothing else would tell."""
        del error
        self._lost = True

    def _look(self, connection: spi.Connection) -> bool:
        return not connection.capabilities.browse or any(connection.browse(self._options.target, limit=1))

    def _put_up_with(self, error: JMSError) -> None:
        self.close()
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
            logger.warning("The broker cannot be reached, looking again until it can: %s", error)
        if now - self._failing_since > self._options.driverRetryTimeout:
            raise error
