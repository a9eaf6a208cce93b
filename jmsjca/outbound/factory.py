"""The connection factory: where outbound work begins."""

from jmsjca.config import ConnectionURL, Limits
from jmsjca.links import ConnectionSettings, connect
from jmsjca.outbound.connection import Connection

__all__ = ["ConnectionFactory"]


class ConnectionFactory:
    """Makes connections to one broker. Opens nothing by itself, and can be pickled.

    Args:
        connection_url: The broker, for instance ``embedded:///var/lib/app/broker.db``.
        user_name: Who connects; None for the user name in the URL, if any.
        password: The password of ``user_name``; ignored without one. It never shows.
        client_id: The client id of the connections; durable subscriptions belong to it.
        limits: Bounds of what a connection holds; None for the defaults.

    Raises:
        InvalidURLError: The URL does not parse.
    """

    def __init__(
        self,
        connection_url: str,
        *,
        user_name: str | None = None,
        password: str | None = None,
        client_id: str | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._url = ConnectionURL.parse(connection_url)
        self._settings = ConnectionSettings(connection_url, user_name, password, client_id, limits or Limits())

    def create_connection(self) -> Connection:
        """Open a connection, stopped: consumers receive once it is started. Entering it with ``with`` starts it.

        Raises:
            UnknownSchemeError: No provider is registered for the URL's scheme.
            ProviderNotInstalledError: The provider's client library is missing.
            JMSError: The broker cannot be reached, or refuses.
        """
        return Connection(connect(self._settings), self._settings.client_id, self._settings.limits)

    def __repr__(self) -> str:
        return f"<ConnectionFactory {self._url}>"
