"""The provider of ``stomp://`` and ``stomp+ssl://``."""

from collections.abc import Callable, Mapping
from urllib.parse import unquote

from jmsjca.config import Clock, ConnectionURL, Credentials, Limits
from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.providers.network import NetworkOptions, open_socket, require_protection
from jmsjca.providers.stomp.channel import Channel, WriteError
from jmsjca.providers.stomp.connection import STOMPConnection
from jmsjca.providers.stomp.dialect import choose_dialect
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
        connected = open_socket(url, options, default_port=_PORTS.get(url.protocol, 61613), tls=url.protocol == _SECURE)
        holder: list[STOMPConnection] = []

        def ended(reason: JMSError) -> None:
            for connection in holder:
                connection.lost(reason)
            lost(reason)

        wire = Wire(Channel(connected), clock, limits.message_bytes, options.reply_timeout, ended)
        try:
            answer = _log_in(wire, url, credentials, client_id, options)
        except BaseException:
            wire.end(ConnectionLostError("The login failed."))
            raise
        dialect = choose_dialect(answer.get("server", ""), wire.version)
        connection = STOMPConnection(wire, dialect, client_id, limits, clock)
        holder.append(connection)
        return connection


def _log_in(
    wire: Wire, url: ConnectionURL, credentials: Credentials | None, client_id: str | None, options: NetworkOptions
) -> Mapping[str, str]:
    headers = {"host": unquote(url.path[1:]) or "/"}
    if credentials:
        headers["login"] = credentials.user_name
        if credentials.password is not None:
            headers["passcode"] = credentials.password
    if client_id is not None:
        headers["client-id"] = client_id
    try:
        with explained(f"log in to {url.host}"):
            return wire.connect(headers, options.heartbeat, options.connect_timeout)
    except WriteError as error:
        raise ConnectionLostError(f"{url} broke the connection at the login.") from error
