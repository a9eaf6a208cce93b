"""The provider for AMQP 1.0: login with TLS and SASL, and recognition and management of the broker."""

import re
import uuid
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, get_args

from proton import Connection, Transport, symbol

from jmsjca.config import Clock, ConnectionURL, Credentials, Limits
from jmsjca.config.connection_url import percent_remedy
from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.errors import (
    ConnectionLostError,
    InvalidDestinationError,
    InvalidOptionError,
    InvalidURLError,
    JMSError,
    NotSupportedError,
)
from jmsjca.log_records import get_logger
from jmsjca.providers.amqp.codec.addresses import address_of
from jmsjca.providers.amqp.connection import AMQPConnection
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.engine.event_loop import offer_idle_timeout
from jmsjca.providers.amqp.links.link_pool import LinkPool
from jmsjca.providers.brokers.activemq import ActiveMQAdmin
from jmsjca.providers.brokers.activemq_amqp import ACTIVEMQ
from jmsjca.providers.brokers.artemis_amqp import ARTEMIS
from jmsjca.providers.brokers.management import MANAGED, HTTPManagement
from jmsjca.providers.brokers.profile import AMQPBrokerProfile, no_management_error
from jmsjca.providers.brokers.qpid_amqp import QPID
from jmsjca.providers.brokers.rabbitmq import RabbitMQHTTPAdmin
from jmsjca.providers.brokers.rabbitmq_amqp import (
    RABBITMQ,
    RABBITMQ4,
    ManagementNode,
    QueueType,
    RabbitMQTopology,
    StreamOptions,
    queue_name,
    rabbitmq4,
)
from jmsjca.providers.common.network import (
    NetworkOptions,
    await_answer,
    check_protocol,
    check_silent_peer,
    open_socket,
    peer_name,
    require_tls_for_password,
    silent_peer_error,
)
from jmsjca.spi import Admin, Capabilities
from jmsjca.spi import Connection as JMSConnection

__all__ = ["BROKERS", "AMQPOptions", "AMQPProvider", "Login", "probe_transactions", "profile_for"]

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
        stream_match_unfiltered: True to also receive messages without a filter value.
    """

    queue_type: QueueType = "quorum"
    stream_offset: str | None = None
    stream_filter: str | None = None
    stream_match_unfiltered: bool = False

    def __post_init__(self) -> None:
        """Check the queue type and the options for streams."""
        if self.queue_type not in get_args(QueueType):
            raise InvalidOptionError(f"Option queue_type is quorum or classic, not {self.queue_type[:50]!r}.")
        _ = self.streams

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
        with ExitStack() as stack:  # also for a signal handler's exception: the caller does not get this connection
            stack.callback(engine.abort, ConnectionLostError("The connection was abandoned while it was opened."))
            try:
                engine.start()
                self._await_open(engine, port)
                properties = engine.call(lambda: handler.properties)  # one turn later: a close may follow the open
                offers = engine.call(lambda: _offered_capabilities(connection))
                product, version = (str(properties.get(name, "")) for name in ("product", "version"))
                broker = profile_for(product, version, offers, queue_type=options.queue_type)
                topology = self._topology(engine, broker)
            except ConnectionLostError as error:
                check_protocol(engine.socket_transport.greeting, "AMQP 1.0", url, port)
                if not engine.socket_transport.greeting:
                    raise silent_peer_error(error, url, port) from error
                raise
            stack.pop_all()
        engine.sessions.keeps = broker.keeps_sessions
        return engine, LinkPool(engine, broker, options.reply_timeout, topology)

    def _topology(self, engine: Engine, broker: AMQPBrokerProfile) -> RabbitMQTopology | None:
        """Return what declares the queues of RabbitMQ 4; None for a broker that creates them when links attach.

        Raises:
            NotSupportedError: An option for streams is set, and the broker is another one.
        """
        options = self.options
        if (broker.product, broker.version) == (RABBITMQ4.product, RABBITMQ4.version):
            return RabbitMQTopology(ManagementNode(engine, options.reply_timeout), options.queue_type, options.streams)
        if options.streams:
            raise NotSupportedError(
                f"The options stream_offset and stream_filter are for RabbitMQ 4; the broker is {broker.announced}."
            )
        return None

    def _await_open(self, engine: Engine, port: int) -> None:
        opened, timeout = engine.connection_handler.opened, self.options.connect_timeout
        ask = partial(check_silent_peer, self.url, self.options, "AMQP 1.0", port, tls=self.url.protocol == "amqps")
        left = await_answer(opened, timeout, lambda: bool(engine.socket_transport.greeting), ask)
        what = f"the opening of the connection to {peer_name(self.url, port)}"
        engine.wait(opened, left, what, lambda: 0.0, timeout - left)


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


class AMQPProvider:
    """Connects to ``amqp://host`` in plain text or ``amqps://host`` over TLS; `AMQPOptions` are in the query."""

    @staticmethod
    def check_url(url: ConnectionURL) -> AMQPOptions:
        """Check a URL without a connection; return its options.

        Raises:
            ConfigurationError: The URL is invalid.
        """
        if url.path.strip("/"):
            raise InvalidURLError(
                f"{url} has a path; the URL of a broker over AMQP has none{percent_remedy(url.path)}."
            )
        return AMQPOptions.parse(url)

    def connect(
        self,
        url: ConnectionURL,
        credentials: Credentials | None,
        *,
        client_id: str | None,
        limits: Limits,
        clock: Clock,
        on_lost: Callable[[JMSError], None],
    ) -> AMQPConnection:
        """Connect, in one attempt.

        Raises:
            ConfigurationError: The URL is invalid.
            JMSSecurityError: The login or the certificate is rejected, or the password would be sent in plain text.
            ConnectionLostError: The broker is unreachable.
        """
        options = self.check_url(url)
        require_tls_for_password(url, options, credentials, "amqps")
        management = None if options.management_url is None else HTTPManagement(options, credentials)
        engine, links = Login(url, options, credentials, client_id, clock, on_lost).open()
        if management is not None:
            try:
                _add_management(links, management)
            except JMSError:
                engine.close(_CLOSE_TIMEOUT)
                raise
        return AMQPConnection(engine, links, limits, clock, client_id)


BROKERS = (ARTEMIS, ACTIVEMQ, QPID, RABBITMQ, RABBITMQ4)
_UNKNOWN_CAPABILITIES = Capabilities(give_back="local", client_ids=True, structured=True, shared_between_processes=True)
_UNKNOWN = AMQPBrokerProfile(
    "any other",
    "AMQP",
    "",
    _UNKNOWN_CAPABILITIES,
    product="",
    naming="capability",
    required_offers={"client_ids": "sole-connection-for-container"},
)


def profile_for(
    product: str,
    version: str,
    offered: Collection[str],
    *,
    queue_type: QueueType = "quorum",
) -> AMQPBrokerProfile:
    """Return the profile for the broker that sent an open frame.

    An untested broker has only the capabilities that it offers and that are defined exactly. Whether it supports
    transactions is probed later. `DELAYED_DELIVERY` does not count: ActiveMQ offers it, but delivers immediately unless
    it is configured to delay.

    Args:
        product: The product name.
        version: The version; empty if the broker sent none.
        offered: The capabilities that the broker offers.
        queue_type: The type of queues that are declared on RabbitMQ 4.
    """
    of_product = (broker for broker in BROKERS if broker.product == product and broker.version <= _major(version))
    found = max(of_product, key=lambda broker: broker.version, default=_UNKNOWN)
    found = rabbitmq4(queue_type) if found is RABBITMQ4 else found
    return replace(found.negotiated(offered), announced=f"{product} {version}".strip())


def _major(version: str) -> int:
    """Return the major version; 0 if it is not known."""
    found = re.match(r"\d{1,4}", version)
    return int(found[0]) if found else 0


def _add_management(links: LinkPool, management: HTTPManagement) -> None:
    """Add the management at the option ``management_url`` to the profile of the broker.

    Raises:
        InvalidOptionError: The management of this broker is not known.
    """
    broker = links.broker
    if links.topology is not None:
        links.topology.admin.extend(RabbitMQHTTPAdmin(management, queue_name))
        # RabbitMQ 4.0 counts no messages that AMQP 1.0 clients send and receive.
        links.broker = broker.with_capabilities({**MANAGED, "counts_traffic": False})
        return
    if broker.product not in {ACTIVEMQ.product, RABBITMQ.product}:
        raise no_management_error(broker)

    def create(connection: JMSConnection, timeout: float) -> Admin:
        """Return the administration of a connection."""
        del timeout
        if broker.product == ACTIVEMQ.product:
            return ActiveMQAdmin(management, connection)
        return RabbitMQHTTPAdmin(management, _plugin_queue)

    links.broker = replace(broker.with_capabilities(MANAGED), create_admin=create)


def _plugin_queue(source: Destination | Subscription) -> str:
    """Return the name of the queue that the plug-in for AMQP 1.0 declares."""
    if not isinstance(source, Queue):
        raise InvalidDestinationError(f"{source} stores no messages itself, and RabbitMQ 3 has no subscriptions here.")
    address_of(source, RABBITMQ.naming).check()
    return source.name
