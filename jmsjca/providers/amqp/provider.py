"""Connects to a broker over AMQP 1.0, and asks an unknown broker whether it has transactions."""

import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from proton import Connection, Transport, symbol

from jmsjca.config import Clock, ConnectionURL, Credentials, Limits
from jmsjca.errors import ConnectionLostError, InvalidURLError, JMSError
from jmsjca.providers.amqp.brokers.registry import profile_for
from jmsjca.providers.amqp.connection import AMQPConnection
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.engine.proton_ffi import check_version
from jmsjca.providers.amqp.links.link_pool import LinkPool
from jmsjca.providers.common.network import NetworkOptions, open_socket, require_tls_for_password

__all__ = ["AMQPProvider", "probe_transactions"]

logger = logging.getLogger("jmsjca.amqp")

_CLOSE_TIMEOUT = 1.0  # seconds for the end of a connection that is lost already

_PROBE_ATTEMPTS = 2
_DEFAULT_PORTS = {"amqp": 5672, "amqps": 5671}
_MAX_FRAME_BYTES = (
    256 * 1024
)  # holds usual messages whole: Artemis may answer a drain between two frames, and end there
_SOLE_CONNECTION = symbol(
    "sole-connection-for-container"
)  # or some brokers let a second connection take a subscription away


class AMQPProvider:
    """``amqp://host`` in the clear, ``amqps://host`` over TLS; options as in `NetworkOptions`."""

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
            ConfigurationError: The URL cannot be used, or proton is not the release that this one was tested with.
            JMSSecurityError: The login or the certificate is refused, or the password would travel in the clear.
            ConnectionLostError: The broker cannot be reached.
        """
        check_version()
        if url.path.strip("/"):
            raise InvalidURLError(f"{url} has a path; the URL of a broker over AMQP has none.")
        options = NetworkOptions.parse(url)
        require_tls_for_password(url, options, credentials, "amqps")
        return _Opener(url, options, credentials, client_id, limits, clock, on_lost).open()


@dataclass(frozen=True, slots=True)
class _Opener:
    """Opens one connection. A broker that nobody tested is asked what it can do, which must not cost the connection."""

    url: ConnectionURL
    options: NetworkOptions
    credentials: Credentials | None
    client_id: str | None
    limits: Limits
    clock: Clock
    on_lost: Callable[[JMSError], None]

    def open(self) -> AMQPConnection:
        """Open it, and again if it ends over the question: once more with it, as that may be chance, then without."""
        for _ in range(_PROBE_ATTEMPTS):
            engine, wire = self._connect()
            if _capabilities_known(engine, wire):
                return self._connection_for(engine, wire)
        logger.warning("%s ends connections that are asked for transactions: it is used without any.", self.url)
        return self._connection_for(*self._connect())

    def _connection_for(self, engine: Engine, wire: LinkPool) -> AMQPConnection:
        return AMQPConnection(engine, wire, wire.broker, self.limits, self.client_id)

    def _connect(self) -> tuple[Engine, LinkPool]:
        url, options = self.url, self.options
        sock = open_socket(url, options, default_port=_DEFAULT_PORTS[url.protocol], tls=url.protocol == "amqps")
        connection = _proton_connection(url, self.credentials, self.client_id)
        engine = Engine(sock, connection, _proton_transport(options, self.credentials), self.clock, self.on_lost)
        try:
            engine.start()
            engine.wait(engine.connection_handler.opened, options.connect_timeout, "the opening of the connection")
            properties = engine.call(
                lambda: engine.connection_handler.properties
            )  # a turn later: a close may be behind the open
            offers = engine.call(lambda: _offered_capabilities(connection))
        except BaseException:  # also that of a signal handler: nobody has this connection
            engine.abort(ConnectionLostError("The connection was given up while it was opened."))
            raise
        broker = profile_for(str(properties.get("product", "")), offers)
        return engine, LinkPool(engine, self.clock, self.limits, broker, reply_timeout=options.reply_timeout)


def _capabilities_known(engine: Engine, wire: LinkPool) -> bool:
    """True once it is known what the broker can do; if not, the connection has ended over the question."""
    if wire.broker.product:
        return True
    answer = probe_transactions(engine, wire)
    if answer:
        wire.broker = wire.broker.with_transactions()
    return answer is not None


def _offered_capabilities(connection: Any) -> set[str]:
    """What the broker offers: nothing, if what it sent for that is no list of symbols."""
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
    """Only the mechanism that fits is allowed, so that a broker cannot talk us into a weaker one."""
    transport = Transport()
    transport.max_frame_size = _MAX_FRAME_BYTES
    if options.heartbeat:
        transport.idle_timeout = 2 * options.heartbeat
    sasl = transport.sasl()
    sasl.allow_insecure_mechs = True  # TLS is around it, or was waived: see require_tls_for_password
    if credentials is not None:
        sasl.allowed_mechs("PLAIN")
    else:
        sasl.allowed_mechs("EXTERNAL" if options.certificate_file else "ANONYMOUS")
    return transport


def probe_transactions(engine: Engine, wire: LinkPool) -> bool | None:
    """Begin a transaction of nothing, and roll it back.

    Args:
        engine: The connection, which nobody uses yet: if it is lost meanwhile, nobody is told.
        wire: Its links.

    Returns:
        True if the broker did both; then it is taken at its word. None if it ended the connection over the question, or
        did not answer it.
    """
    try:
        engine.call(lambda: engine.connection_handler.suppress_loss_report(on=True))
        answer = _declare_and_roll_back(wire)
        engine.call(lambda: engine.connection_handler.suppress_loss_report(on=False))
    except ConnectionLostError as error:
        logger.info("The broker was asked whether it has transactions, and the connection ended: %s", error)
        engine.close(_CLOSE_TIMEOUT)
        return None
    return answer


def _declare_and_roll_back(wire: LinkPool) -> bool:
    try:
        transaction = wire.declare(wire.reply_timeout)
    except ConnectionLostError:
        raise
    except JMSError:
        return False
    return wire.roll_back(transaction)
