"""The provider of ``stomp://`` and ``stomp+ssl://`` URLs, and the recognition of the broker."""

import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import unquote

from jmsjca.config import Clock, ConnectionURL, Credentials, Limits
from jmsjca.errors import ConnectionLostError, JMSError, NotSupportedError
from jmsjca.providers.brokers.activemq import ActiveMQAdmin
from jmsjca.providers.brokers.activemq_stomp import ACTIVEMQ, ActiveMQ, RecentActiveMQ
from jmsjca.providers.brokers.artemis_stomp import ARTEMIS, Artemis
from jmsjca.providers.brokers.management import MANAGED, HTTPManagement
from jmsjca.providers.brokers.openmq_stomp import OPENMQ, OpenMQ
from jmsjca.providers.brokers.profile import BrokerProfile, no_management_error
from jmsjca.providers.brokers.rabbitmq import RabbitMQHTTPAdmin
from jmsjca.providers.brokers.rabbitmq_stomp import RABBITMQ, RABBITMQ4, RabbitMQ
from jmsjca.providers.common.network import (
    NetworkOptions,
    check_protocol,
    check_silent_peer,
    open_socket,
    peer_name,
    require_tls_for_password,
)
from jmsjca.providers.stomp.connection import STOMPConnection
from jmsjca.providers.stomp.dialect import Dialect, quote_client_id
from jmsjca.providers.stomp.errors import translating_errors
from jmsjca.providers.stomp.protocol.session import STOMPSession
from jmsjca.providers.stomp.protocol.transport import SocketChannel
from jmsjca.spi import Admin, Capabilities, Connection

__all__ = ["BROKERS", "UNKNOWN", "STOMPProvider", "UnknownBroker", "dialect_for"]

_SECURE = "stomp+ssl"
_PORTS = {"stomp": 61613, _SECURE: 61614}


@dataclass(frozen=True, slots=True)
class STOMPOptions(NetworkOptions):
    """The options of a URL: the network options and the STOMP options.

    Args:
        java_maps: True to exchange maps with Java clients. ActiveMQ needs XStream among its libraries for that, and
            ends the connection otherwise.
    """

    java_maps: bool = False


class STOMPProvider:
    """Connects to ``stomp://host:61613`` or, with TLS, ``stomp+ssl://host:61614``. A path names the virtual host."""

    @staticmethod
    def check_url(url: ConnectionURL) -> STOMPOptions:
        """Check a URL without a connection; return its options.

        Raises:
            ConfigurationError: An option is unknown, or its value is invalid.
        """
        return STOMPOptions.parse(url)

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
        options = self.check_url(url)
        require_tls_for_password(url, options, credentials, _SECURE)
        opener = _Opener(url, options, credentials, limits, clock)
        connections: list[STOMPConnection] = []

        def ended(reason: JMSError) -> None:
            """Report the loss to the connection's consumers and units first, then to the caller, who may reconnect."""
            for connection in connections:
                connection.lost(reason)
            on_lost(reason)

        management = None if options.management_url is None else HTTPManagement(options, credentials)
        session, dialect = opener.open(client_id, ended)
        create_admin = None
        if management is not None:
            dialect, create_admin = _administered(session, dialect, management, _virtual_host(url))
        connection = STOMPConnection(
            session,
            dialect,
            opener.open_side_session,
            client_id=client_id,
            limits=limits,
            clock=clock,
            create_admin=create_admin,
        )
        connections.append(connection)
        return connection


@dataclass(frozen=True, slots=True)
class _Opener:
    """Opens sessions with one broker."""

    url: ConnectionURL
    options: STOMPOptions
    credentials: Credentials | None
    limits: Limits
    clock: Clock

    def open(self, client_id: str | None, ended: Callable[[JMSError], None]) -> tuple[STOMPSession, Dialect]:
        """Connect and log in."""
        secure = self.url.protocol == _SECURE
        connected = open_socket(self.url, self.options, default_port=_PORTS[self.url.protocol], tls=secure)
        channel = SocketChannel(connected, self.options.reply_timeout)
        session = STOMPSession(channel, self.clock, self.limits.message_bytes, self.options.reply_timeout, ended)
        return session, self._log_in(session, self._login(client_id))

    def open_side_session(self) -> STOMPSession:
        """Open another session, for requests that may end it."""
        return self.open(None, lambda _: None)[0]

    def _login(self, client_id: str | None) -> dict[str, str]:
        headers = {"host": _virtual_host(self.url)}
        if self.credentials:
            headers["login"] = self.credentials.user_name
            if self.credentials.password is not None:
                headers["passcode"] = self.credentials.password
        if client_id is not None:
            headers["client-id"] = quote_client_id(client_id)
        return headers

    def _log_in(self, session: STOMPSession, headers: dict[str, str]) -> Dialect:
        port = _PORTS[self.url.protocol]
        peer = peer_name(self.url, port)
        ask = partial(check_silent_peer, self.url, self.options, "STOMP", port, tls=self.url.protocol == _SECURE)
        with ExitStack() as stack:
            stack.callback(session.end, ConnectionLostError("The login failed."))
            try:
                with translating_errors(f"log in to {peer}"):
                    answer = session.connect(
                        headers, self.options.heartbeat, self.options.connect_timeout, peer, on_silence=ask
                    )
                dialect = dialect_for(answer.get("server", ""), session.version, java_maps=self.options.java_maps)
            except ConnectionLostError:
                check_protocol(session.beginning, "STOMP", self.url, port)
                raise
            stack.pop_all()
        return dialect


def _virtual_host(url: ConnectionURL) -> str:
    return unquote(url.path[1:]) or "/"


def _administered(
    session: STOMPSession, dialect: Dialect, management: HTTPManagement, virtual_host: str
) -> tuple[Dialect, Callable[[Connection], Admin]]:
    """Return the dialect with the capabilities of the management over HTTP, and what creates the administration."""
    broker = dialect.broker
    if isinstance(dialect, RabbitMQ):
        queue_name = dialect.queue_name

        def create(connection: Connection) -> Admin:
            """Return the administration of a connection."""
            del connection
            return RabbitMQHTTPAdmin(management, queue_name, virtual_host=virtual_host)

    elif broker is ACTIVEMQ:
        create = partial(ActiveMQAdmin, management)
    else:
        session.end(ConnectionLostError("The broker has no such management."))
        raise no_management_error(broker)
    return replace(dialect, broker=broker.with_capabilities(MANAGED)), create


UNKNOWN = BrokerProfile(
    "an unknown broker", "STOMP", "", Capabilities(give_back="local", structured=True, shared_between_processes=True)
)

BROKERS = (ACTIVEMQ, ARTEMIS, RABBITMQ, RABBITMQ4, OPENMQ)


class UnknownBroker(ActiveMQ):
    """An untested broker: only the semantics that the STOMP specification guarantees are assumed."""

    __slots__ = ()
    acknowledges_in_transaction = False
    confirms_before_commit = False
    confirms_in_order = False
    refuses_commit_after_failed_send = False
    needs_abort_after_commit = False
    encode = Dialect.encode
    is_header_property = Dialect.is_header_property
    is_header_value = Dialect.is_header_value


_SETTLES_UP_TO = (6, 3)
_RELEASE = re.compile(r"(\d{1,4})\.(\d{1,4})(?!\d)")
_KNOWN: dict[str, tuple[type[Dialect], BrokerProfile]] = {
    "ActiveMQ": (ActiveMQ, ACTIVEMQ),
    "ActiveMQ-Artemis": (Artemis, ARTEMIS),
    "RabbitMQ": (RabbitMQ, RABBITMQ),
    "Eclipse OpenMQ(tm)": (OpenMQ, OPENMQ),
}


def dialect_for(server: str, version: str, *, java_maps: bool = False) -> Dialect:
    """Return the dialect for the header ``server`` of CONNECTED; an unknown broker gets the conservative minimum.

    Raises:
        NotSupportedError: `java_maps` is set, and the broker is not ActiveMQ, the only one that supports it.
    """
    product, _, release = server.partition("/")
    kind, broker = _KNOWN.get(product, (UnknownBroker, UNKNOWN))
    if kind is ActiveMQ and _at_least(release, _SETTLES_UP_TO):
        kind = RecentActiveMQ
    if broker is RABBITMQ and _at_least(release, (4, 0)):
        broker = RABBITMQ4
    if java_maps and broker is not ACTIVEMQ:
        raise NotSupportedError(
            f"The option java_maps is for ActiveMQ; {broker.name} does not convert Java maps for STOMP."
        )
    return kind(broker, version, java_maps, server)


def _at_least(release: str, wanted: tuple[int, int]) -> bool:
    found = _RELEASE.match(release)
    return found is not None and (int(found[1]), int(found[2])) >= wanted
