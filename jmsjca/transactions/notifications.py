"""Notifications of PostgreSQL: a commit that adds to an outbox wakes the relays, which need not wait for a poll."""

import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from jmsjca.log_records import get_logger

__all__ = ["NotificationListener", "StopRequest", "notifying"]

logger = get_logger("jmsjca.transactions")

_CHANNEL = "jmsjca_outbox"
_STOP_INTERVAL = 0.5  # seconds between checks whether the relay is stopped


def notifying(statement: sa.Insert, dialect: sa.Dialect) -> sa.Executable:
    """Return a statement that notifies the relays when its transaction commits, on PostgreSQL; elsewhere as given."""
    if dialect.name != "postgresql":
        return statement
    return statement.returning(sa.func.pg_notify(_CHANNEL, ""))


class StopRequest:
    """A request to stop that a signal handler may make at any moment.

    A handler that sets an `Event` may wait forever: for the lock that the interrupted thread holds while it begins or
    ends a wait. `SimpleQueue.put` needs none.
    """

    def __init__(self) -> None:
        self._requests: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        """Make the request."""
        self._requests.put(None)

    def is_set(self) -> bool:
        """Return True after a request."""
        return not self._requests.empty()

    def clear(self) -> None:
        """Withdraw all requests."""
        with suppress(Empty):
            while True:
                self._requests.get_nowait()

    def wait(self, timeout: float) -> None:
        """Wait for a request, which stays; for one thread.

        Args:
            timeout: Seconds to wait at most.
        """
        with suppress(Empty):
            self._requests.get(timeout=timeout)
            self._requests.put(None)


class NotificationListener:
    """Waits for notifications on a connection of its own; without them it only waits. Needs the driver psycopg.

    Args:
        engine: The engine of the outbox.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._can_listen = engine.dialect.name == "postgresql" and engine.dialect.driver == "psycopg"
        self._connection: Any = None

    def listen(self) -> None:
        """Begin to listen, if that is possible and not begun: call it before each look at the table."""
        if self._connection is not None or not self._can_listen:
            return
        try:
            pooled = self._engine.raw_connection()
            pooled.detach()
            self._connection = pooled.dbapi_connection
            self._connection.autocommit = True
            self._connection.execute(f"LISTEN {_CHANNEL}")
        except (SQLAlchemyError, self._errors()) as error:
            self._give_up(error)

    def wait(self, timeout: float, stopping: StopRequest) -> None:
        """Wait for a notification.

        Args:
            timeout: Seconds to wait.
            stopping: Ends the wait.
        """
        if self._connection is None:
            stopping.wait(timeout)
            return
        deadline = time.monotonic() + timeout
        try:
            while not stopping.is_set() and (left := deadline - time.monotonic()) > 0:
                if list(self._connection.notifies(timeout=min(left, _STOP_INTERVAL), stop_after=1)):
                    return
        except self._errors() as error:
            self._give_up(error)

    def close(self) -> None:
        """End the connection. Idempotent."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(self._errors()):
                connection.close()

    def _errors(self) -> type[Exception]:
        return self._engine.dialect.loaded_dbapi.Error

    def _give_up(self, error: Exception) -> None:
        logger.info("A relay polls its table, as it cannot listen for notifications now: %s", error)
        self.close()
