"""The connection factory: the entry point for sending and receiving."""

from collections.abc import Sequence
from dataclasses import replace

from jmsjca.config import AcknowledgeMode, ConnectionURL, Limits
from jmsjca.hooks import HookChain, Hooks
from jmsjca.outbound.connection import Connection
from jmsjca.outbound.context import JMSContext
from jmsjca.reconnection import ConnectionSettings

__all__ = ["ConnectionFactory"]


class ConnectionFactory:
    """Makes connections to one broker. Opens nothing by itself, and can be pickled, if its hooks can.

    Args:
        connection_url: The broker, for instance ``embedded:///var/lib/app/broker.db``.
        user_name: Who connects; None for the user name in the URL, if any.
        password: The password of ``user_name``; ignored without one. It never shows.
        client_id: The client id of the connections, of one at a time; durable subscriptions belong to it.
        limits: Bounds of what a connection holds; None for the defaults.
        hooks: What surrounds sends, the outermost first. They go with the factory when it is pickled.

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
        hooks: Sequence[Hooks] = (),
    ) -> None:
        self._url = ConnectionURL.parse(connection_url)
        self._settings = ConnectionSettings(connection_url, user_name, password, client_id, limits or Limits())
        self._hooks = HookChain(hooks)

    def create_connection(self, user_name: str | None = None, password: str | None = None) -> Connection:
        """Open a connection, stopped: consumers receive once it is started. Entering it with ``with`` starts it.

        Args:
            user_name: Who connects, if not the factory's.
            password: The password of ``user_name``; ignored without one.

        Raises:
            UnknownSchemeError: No provider is registered for the URL's scheme.
            ProviderNotInstalledError: The provider's client library is missing.
            InvalidClientIDError: Another connection has the client id.
            JMSError: The broker cannot be reached, or refuses.
        """
        if user_name is None:
            return Connection(self._settings, self._hooks)
        return Connection(replace(self._settings, user_name=user_name, password=password), self._hooks)

    def create_context(
        self,
        session_mode: AcknowledgeMode = AcknowledgeMode.AUTO,
        *,
        transacted: bool = False,
        user_name: str | None = None,
        password: str | None = None,
    ) -> JMSContext:
        """Open a connection with one session in it, for the simplified API (JMS 3.1, section 2.8).

        Args:
            session_mode: How receipt is acknowledged; ignored if transacted.
            transacted: True if what is received and sent is committed together.
            user_name: Who connects, if not the factory's.
            password: The password of ``user_name``; ignored without one.

        Raises:
            NotSupportedError: The broker has no transactions.
            JMSError: As `create_connection`.
        """
        return JMSContext.on(self.create_connection(user_name, password), session_mode, transacted=transacted)

    def __repr__(self) -> str:
        return f"<ConnectionFactory {self._url}>"
