"""The provider for brokers that speak AMQP 1.0."""

from collections.abc import Callable

from jmsjca.config import Clock, ConnectionURL, Credentials, Limits
from jmsjca.errors import InvalidURLError, JMSError
from jmsjca.providers.amqp.brokers.http_admin import with_management
from jmsjca.providers.amqp.brokers.profile import AMQPBrokerProfile
from jmsjca.providers.amqp.connection import AMQPConnection
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.engine.proton_ffi import check_version
from jmsjca.providers.amqp.login import AMQPOptions, Login
from jmsjca.providers.common.network import require_tls_for_password

__all__ = ["AMQPProvider"]

_CLOSE_TIMEOUT = 1.0  # seconds, for a connection that is not used


class AMQPProvider:
    """Connects to ``amqp://host`` in plain text or ``amqps://host`` over TLS; `AMQPOptions` are in the query."""

    @staticmethod
    def check_url(url: ConnectionURL) -> AMQPOptions:
        """Check a URL without a connection; return its options.

        Raises:
            ConfigurationError: The URL is invalid, or the installed release of proton is not supported.
        """
        check_version()
        if url.path.strip("/"):
            raise InvalidURLError(f"{url} has a path; the URL of a broker over AMQP has none.")
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
            ConfigurationError: The URL is invalid, or the installed release of proton is not supported.
            JMSSecurityError: The login or the certificate is rejected, or the password would be sent in plain text.
            ConnectionLostError: The broker is unreachable.
        """
        options = self.check_url(url)
        require_tls_for_password(url, options, credentials, "amqps")
        engine, links = Login(url, options, credentials, client_id, clock, on_lost).open()
        if options.management_url is not None:
            links.broker = _managed(engine, links.broker, options, credentials)
        return AMQPConnection(engine, links, limits, clock, client_id)


def _managed(
    engine: Engine, broker: AMQPBrokerProfile, options: AMQPOptions, credentials: Credentials | None
) -> AMQPBrokerProfile:
    try:
        return with_management(broker, options, credentials)
    except BaseException:  # also one of a signal handler: the caller does not get this connection
        engine.close(_CLOSE_TIMEOUT)
        raise
