"""Helpers for the tests of pools: a factory that records its connections and fails on demand, and lost connections."""

from jmsjca import Connection, ConnectionFactory
from jmsjca.config.options import OutboundOptions
from jmsjca.errors import ConnectionLostError
from jmsjca.outbound.pooled_connection import PooledConnection

LOST = ConnectionLostError("The broker went away.")


class ScriptedFactory:
    """Opens connections of a factory, and raises the errors of a script instead of some.

    Attributes:
        opened: The connections, in order.
        failures: The errors of the next attempts, first one first.
    """

    def __init__(
        self, url: str, *, client_id: str | None = None, options: str = "", idle_timeout: float = 30.0
    ) -> None:
        self._factory = ConnectionFactory(url, client_id=client_id, options=options, idle_timeout=idle_timeout)
        self.opened: list[Connection] = []
        self.users: list[str | None] = []
        self.failures: list[BaseException] = []

    @property
    def client_id(self) -> str | None:
        return self._factory.client_id

    @property
    def options(self) -> OutboundOptions:
        return self._factory.options

    @property
    def idle_timeout(self) -> float:
        return self._factory.idle_timeout

    def create_connection(self, user_name: str | None = None, password: str | None = None, /) -> Connection:
        if self.failures:
            raise self.failures.pop(0)
        self.users.append(user_name)
        self.opened.append(self._factory.create_connection(user_name, password))
        return self.opened[-1]

    @property
    def open(self) -> list[Connection]:
        """The connections that are not closed."""
        return [connection for connection in self.opened if not connection._closed]


def lose(connection: PooledConnection | Connection) -> None:
    """Report the loss of a connection, as the provider's I/O thread does."""
    raw = connection.connection if isinstance(connection, PooledConnection) else connection
    raw._notifier.notify_loss(LOST)
