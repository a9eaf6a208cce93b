"""The provider of ``stomp://`` and ``stomp+ssl://``."""

from collections.abc import Callable
from urllib.parse import unquote

from jmsjca.config import Clock, ConnectionURL, Credentials, Limits
from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.providers.network import NetworkOptions, open_socket, require_protection
from jmsjca.providers.stomp.channel import Channel
from jmsjca.providers.stomp.connection import STOMPConnection
from jmsjca.providers.stomp.dialect import Dialect
from jmsjca.providers.stomp.dialects import choose_dialect
from jmsjca.providers.stomp.refusals import explained
from jmsjca.providers.stomp.wire import Wire

__all__ = ["STOMPProvider"]

_SECURE = "stomp+ssl"
_PORTS = {"stomp": 61613, _SECURE: 61614}


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
        lost: Callable[[JMSError], None],
    ) -> STOMPConnection:
        """Connect and log in.

        Raises:
            ConfigurationError: The URL or an option in it cannot be used.
            JMSSecurityError: The broker refuses the user, cannot be trusted, or the password would go in the clear.
            ConnectionLostError: The broker cannot be reached, or does not speak STOMP.
        """
        options = NetworkOptions.parse(url)
        require_protection(url, options, credentials, _SECURE)
        connections: list[STOMPConnection] = []

        def ended(reason: JMSError) -> None:
            for connection in connections:
                connection.lost(reason)
            lost(reason)

        def open_wire(client: str | None, told: Callable[[JMSError], None]) -> tuple[Wire, Dialect]:
            wire = _connect(url, options, limits, clock, told)
            return wire, _log_in(wire, url, credentials, client, options)

        def aside() -> Wire:
            return open_wire(None, lambda _: None)[0]

        wire, dialect = open_wire(client_id, ended)
        connection = STOMPConnection(wire, dialect, aside, client_id=client_id, limits=limits, clock=clock)
        connections.append(connection)
        return connection


def _connect(
    url: ConnectionURL, options: NetworkOptions, limits: Limits, clock: Clock, ended: Callable[[JMSError], None]
) -> Wire:
    secure = url.protocol == _SECURE
    connected = open_socket(url, options, default_port=_PORTS.get(url.protocol, 61613), tls=secure)
    return Wire(Channel(connected), clock, limits.message_bytes, options.reply_timeout, ended)


def _log_in(
    wire: Wire, url: ConnectionURL, credentials: Credentials | None, client_id: str | None, options: NetworkOptions
) -> Dialect:
    headers = {"host": unquote(url.path[1:]) or "/"}
    if credentials:
        headers["login"] = credentials.user_name
        if credentials.password is not None:
            headers["passcode"] = credentials.password
    if client_id is not None:
        headers["client-id"] = client_id
    try:
        with explained(f"log in to {url.host}"):
            answer = wire.connect(headers, options.heartbeat, options.connect_timeout)
    except BaseException:
        wire.end(ConnectionLostError("The login failed."))
        raise
    return choose_dialect(answer.get("server", ""), wire.version)
