"""The connection factory, the entry point for sending and receiving."""

from collections.abc import Sequence
from dataclasses import replace

from jmsjca.config.connection_url import ConnectionURL
from jmsjca.config.settings import AcknowledgeMode, Limits
from jmsjca.hooks import HookChain, Hooks
from jmsjca.outbound.connection import Connection, SharedConnection
from jmsjca.outbound.context import JMSContext, create_context
from jmsjca.reconnection import ConnectionSettings

__all__ = ["ConnectionFactory"]


class ConnectionFactory:
    """Creates connections to one broker. It opens nothing by itself, and can be pickled if its hooks can.

    Args:
        connection_url: URL of the broker, for example ``embedded:///var/lib/app/broker.db``.
        user_name: User name; None for the one in the URL, if any.
        password: Password of ``user_name``; ignored without a user name. It appears in no text form.
        client_id: Client id of the connections, which one connection at a time can use; owns durable subscriptions.
        limits: Bounds of each connection; None for the defaults.
        hooks: Hooks around sends, the outermost first. They are pickled with the factory.

    Raises:
        InvalidURLError: The URL cannot be parsed.
    """

    def __init__(
        self,
        connection_url: str,
        *,
        user_name: str | None = None,
        password: str | None = None,
        client_id: str | None = None,
        limits: Limits | None = None,
        hooks: Sequence[Hooks] = (),
    ) -> None:
        self._url = ConnectionURL.parse(connection_url)
        self._settings = ConnectionSettings(connection_url, user_name, password, client_id, limits or Limits())
        self._hooks = HookChain(hooks)

    def create_connection(self, user_name: str | None = None, password: str | None = None) -> Connection:
        """Open a connection. Consumers receive once it is started; entering it with ``with`` starts it.

        Args:
            user_name: User name; None for the factory's.
            password: Password of ``user_name``; ignored without a user name.

        Raises:
            UnknownSchemeError: No provider is registered for the URL's scheme.
            ProviderNotInstalledError: The provider's client library is missing.
            InvalidClientIDError: Another connection has the client id.
            JMSError: The broker cannot be reached, or refuses the connection.
        """
        return Connection(self._settings_for(user_name, password), self._hooks)

    def create_context(
        self,
        session_mode: AcknowledgeMode = AcknowledgeMode.AUTO,
        *,
        transacted: bool = False,
        user_name: str | None = None,
        password: str | None = None,
    ) -> JMSContext:
        """Open a connection with one session, for the simplified API (JMS 3.1, section 2.8).

        Args:
            session_mode: The acknowledgement of receipts; ignored if transacted.
            transacted: True to commit all receipts and sends together.
            user_name: User name; None for the factory's.
            password: Password of ``user_name``; ignored without a user name.

        Raises:
            NotSupportedError: The broker has no transactions.
            JMSError: As `create_connection`.
        """
        connection = SharedConnection(self._settings_for(user_name, password), self._hooks)
        return create_context(connection, session_mode, transacted=transacted)

    def _settings_for(self, user_name: str | None, password: str | None) -> ConnectionSettings:
        if user_name is None:
            return self._settings
        return replace(self._settings, user_name=user_name, password=password)

    def __repr__(self) -> str:
        return f"<ConnectionFactory {self._url}>"
