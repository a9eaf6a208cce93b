"""Opening and authenticating a connection: TLS, SASL, and the questions to a broker before the connection is used."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

from proton import Connection, Transport, symbol

from jmsjca.config import Clock, ConnectionURL, Credentials
from jmsjca.errors import ConnectionLostError, InvalidOptionError, JMSError
from jmsjca.log_records import get_logger
from jmsjca.providers.amqp.brokers.rabbitmq_stream import StreamOptions
from jmsjca.providers.amqp.brokers.rabbitmq_topology import QueueType
from jmsjca.providers.amqp.brokers.registry import profile_for
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.engine.heartbeat import offer_idle_timeout
from jmsjca.providers.amqp.links.link_pool import LinkPool
from jmsjca.providers.common.network import NetworkOptions, check_protocol, open_socket, peer_name

__all__ = ["AMQPOptions", "Login", "probe_transactions"]

logger = get_logger("jmsjca.amqp")

_CLOSE_TIMEOUT = 1.0  # seconds to close a connection that is lost already

_PROBE_ATTEMPTS = 2
_DEFAULT_PORTS = {"amqp": 5672, "amqps": 5671}

_MAX_FRAME_BYTES = 256 * 1024
"""A usual message fits into one frame: Artemis may reply to a drain between two frames, and end the message there."""

_SOLE_CONNECTION = symbol("sole-connection-for-container")
"""Without this capability some brokers let a second connection with the client id steal a durable subscription."""


@dataclass(frozen=True, slots=True)
class AMQPOptions(NetworkOptions):
    """Options in the URL of a broker that speaks AMQP.

    Args:
        queue_type: The type of the queues that are declared on RabbitMQ 4: "quorum" or "classic".
        stream_offset: Where consumers of streams of RabbitMQ 4 begin, as in `StreamOptions`.
        stream_filter: The filter values of the messages that they receive, separated by commas.
        stream_match_unfiltered: True to receive messages without a filter value, too.
    """

    queue_type: QueueType = "quorum"
    stream_offset: str | None = None
    stream_filter: str | None = None
    stream_match_unfiltered: bool = False

    def __post_init__(self) -> None:
        """Check the queue type and the options for streams."""
        if self.queue_type not in get_args(QueueType):
            raise InvalidOptionError(f"Option queue_type is quorum or classic, not {self.queue_type[:50]!r}.")
        self.streams  # noqa: B018

    @property
    def streams(self) -> StreamOptions:
        """The options for consumers of streams."""
        return StreamOptions(self.stream_offset, self.stream_filter, self.stream_match_unfiltered)


@dataclass(frozen=True, slots=True)
class Login:
    """Opens one connection, and probes the capabilities of an untested broker.

    Args:
        url: The broker's URL; its protocol decides between TLS and plain text.
        options: The network options of the URL.
        credentials: User name and password; None for EXTERNAL (with a client certificate) or ANONYMOUS.
        client_id: The container id; None for a random one.
        clock: The clock for timers.
        on_lost: Called once when the connection is lost.
    """

    url: ConnectionURL
    options: AMQPOptions
    credentials: Credentials | None
    client_id: str | None
    clock: Clock
    on_lost: Callable[[JMSError], None]

    def open(self) -> tuple[Engine, LinkPool]:
        """Open a connection; return its engine and links.

        A broker may end the connection because of the probe. Then connect again, the first time with the probe, as the
        end may have been a coincidence, and the second time without.
        """
        for _ in range(_PROBE_ATTEMPTS):
            engine, links = self._connect()
            if _capabilities_known(engine, links):
                return engine, links
        logger.warning("%s ends connections that are asked for transactions: it is used without any.", self.url)
        return self._connect()

    def _connect(self) -> tuple[Engine, LinkPool]:
        url, options, port = self.url, self.options, _DEFAULT_PORTS[self.url.protocol]
        sock = open_socket(url, options, default_port=port, tls=url.protocol == "amqps")
        connection = _proton_connection(url, self.credentials, self.client_id)
        engine = Engine(sock, connection, _proton_transport(options, self.credentials), self.clock, self.on_lost)
        handler = engine.connection_handler
        try:
            engine.start()
            engine.wait(
                handler.opened, options.connect_timeout, f"the opening of the connection to {peer_name(url, port)}"
            )
            properties = engine.call(lambda: handler.properties)  # one turn later: a close may follow the open
            offers = engine.call(lambda: _offered_capabilities(connection))
            product, version = (str(properties.get(name, "")) for name in ("product", "version"))
            broker = profile_for(product, version, offers, queue_type=options.queue_type, streams=options.streams)
        except BaseException as error:  # also one of a signal handler: the caller does not get this connection
            engine.abort(ConnectionLostError("The connection was abandoned while it was opened."))
            if isinstance(error, ConnectionLostError):
                check_protocol(engine.socket_transport.greeting, "AMQP 1.0", url, port)
            raise
        engine.sessions.keeps = broker.keeps_sessions
        return engine, LinkPool(engine, broker, options.reply_timeout)


def _capabilities_known(engine: Engine, links: LinkPool) -> bool:
    """Complete the profile of an untested broker; return False if the connection ended because of the probe."""
    if links.broker.product:
        return True
    has_transactions = probe_transactions(engine, links)
    if has_transactions:
        links.broker = links.broker.with_transactions()
    return has_transactions is not None


def _offered_capabilities(connection: Any) -> set[str]:
    """Return the capabilities that the broker offers; none if it sent something else than symbols."""
    try:
        return set(map(str, connection.remote_offered_capabilities or ()))
    except TypeError:
        return set()


def _proton_connection(url: ConnectionURL, credentials: Credentials | None, client_id: str | None) -> Connection:
    connection = Connection()
    connection.container = client_id or f"jmsjca-{uuid.uuid4().hex}"
    connection.hostname = url.host.strip("[]")
    if client_id:
        connection.desired_capabilities = [_SOLE_CONNECTION]
    if credentials is not None:
        connection.user = credentials.user_name
        connection.password = credentials.password or ""
    return connection


def _proton_transport(options: NetworkOptions, credentials: Credentials | None) -> Transport:
    """Create a transport that allows one SASL mechanism only, so that a broker cannot downgrade the login."""
    transport = Transport()
    transport.max_frame_size = _MAX_FRAME_BYTES
    offer_idle_timeout(transport, options.heartbeat)
    sasl = transport.sasl()
    sasl.allow_insecure_mechs = True  # TLS protects the login, or was waived: see require_tls_for_password
    if credentials is not None:
        sasl.allowed_mechs("PLAIN")
    else:
        sasl.allowed_mechs("EXTERNAL" if options.certificate_file else "ANONYMOUS")
    return transport


def probe_transactions(engine: Engine, links: LinkPool) -> bool | None:
    """Declare an empty transaction and roll it back, to learn whether the broker supports transactions.

    Args:
        engine: The engine of an unused connection: its loss during the probe is not reported.
        links: The links of the connection.

    Returns:
        True if the broker did both; then its support is trusted. None if it ended the connection, or did not reply.
    """
    try:
        engine.call(lambda: engine.connection_handler.suppress_loss_report(on=True))
        answer = _declare_and_roll_back(links)
        engine.call(lambda: engine.connection_handler.suppress_loss_report(on=False))
    except ConnectionLostError as error:
        logger.info("The broker was asked whether it has transactions, and the connection ended: %s", error)
        engine.close(_CLOSE_TIMEOUT)
        return None
    return answer


def _declare_and_roll_back(links: LinkPool) -> bool:
    try:
        transaction = links.declare(links.reply_timeout)
    except ConnectionLostError:
        raise
    except JMSError:
        return False
    return links.roll_back(transaction)
