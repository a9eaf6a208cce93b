"""The provider of ``stomp://`` and ``stomp+ssl://``."""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote

from jmsjca.config import Clock, ConnectionURL, Credentials, Limits
from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.providers.common.network import NetworkOptions, open_socket, require_tls_for_password
from jmsjca.providers.stomp.brokers.dialect import Dialect
from jmsjca.providers.stomp.brokers.registry import choose_dialect
from jmsjca.providers.stomp.connection import STOMPConnection
from jmsjca.providers.stomp.errors import explained
from jmsjca.providers.stomp.protocol.session import Wire
from jmsjca.providers.stomp.protocol.transport import Channel

__all__ = ["STOMPProvider"]

_SECURE = "stomp+ssl"
_PORTS = {"stomp": 61613, _SECURE: 61614}


@dataclass(frozen=True, slots=True)
class STOMPOptions(NetworkOptions):
    """The options of a URL, and those of STOMP alone.

    Args:
        java_maps: True to exchange maps with Java's clients, for an ActiveMQ that has XStream among its libraries. One
            without it ends the connection.
    """

    java_maps: bool = False


class STOMPProvider:
    """``stomp://host:61613`` and, with TLS, ``stomp+ssl://host:61614``; a path names the virtual host."""

    def connect(
        self,
        url: ConnectionURL,
        credentials: Credentials | None,
        *,
        client_id: str | None,
        limits: Limits,
        clock: Clock,
        on_lost: Callable[[JMSError], None],
    ) -> STOMPConnection:
        """Connect and log in.

        Raises:
            ConfigurationError: The URL or an option in it cannot be used.
            JMSSecurityError: The broker refuses the user, cannot be trusted, or the password would go in the clear.
            ConnectionLostError: The broker cannot be reached, or does not speak STOMP.
        """
        options = STOMPOptions.parse(url)
        require_tls_for_password(url, options, credentials, _SECURE)
        opener = _Opener(url, options, credentials, limits, clock)
        connections: list[STOMPConnection] = []

        def ended(reason: JMSError) -> None:
            """Tell those who use the connection before the one who may replace it."""
            for connection in connections:
                connection.lost(reason)
            on_lost(reason)

        wire, dialect = opener.open(client_id, ended)
        connection = STOMPConnection(wire, dialect, opener.aside, client_id=client_id, limits=limits, clock=clock)
        connections.append(connection)
        return connection


@dataclass(frozen=True, slots=True)
class _Opener:
    """Opens wires to one broker."""

    url: ConnectionURL
    options: STOMPOptions
    credentials: Credentials | None
    limits: Limits
    clock: Clock

    def open(self, client_id: str | None, ended: Callable[[JMSError], None]) -> tuple[Wire, Dialect]:
        """Connect and log in."""
        secure = self.url.protocol == _SECURE
        connected = open_socket(self.url, self.options, default_port=_PORTS[self.url.protocol], tls=secure)
        wire = Wire(Channel(connected), self.clock, self.limits.message_bytes, self.options.reply_timeout, ended)
        return wire, self._log_in(wire, self._login(client_id))

    def aside(self) -> Wire:
        """Open a wire for questions that may end it; nobody else minds."""
        return self.open(None, lambda _: None)[0]

    def _login(self, client_id: str | None) -> dict[str, str]:
        headers = {"host": unquote(self.url.path[1:]) or "/"}
        if self.credentials:
            headers["login"] = self.credentials.user_name
            if self.credentials.password is not None:
                headers["passcode"] = self.credentials.password
        if client_id is not None:
            headers["client-id"] = _kept_whole(client_id)
        return headers

    def _log_in(self, wire: Wire, headers: dict[str, str]) -> Dialect:
        try:
            with explained(f"log in to {self.url.host}"):
                answer = wire.connect(headers, self.options.heartbeat, self.options.connect_timeout)
            return choose_dialect(answer.get("server", ""), wire.version, java_maps=self.options.java_maps)
        except BaseException:
            wire.end(ConnectionLostError("The login failed."))
            raise


def _kept_whole(client_id: str) -> str:
    """Quote what ActiveMQ would strip of its blanks, and what looks quoted: different ids stay different."""
    quoted = client_id.startswith("'") and client_id.endswith("'")
    return f"'{client_id}'" if quoted or client_id != client_id.strip() else client_id
