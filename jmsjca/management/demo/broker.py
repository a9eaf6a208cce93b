"""What the run asks of the broker: whether it will do, the subscriptions, and the end of what was made there."""

from contextlib import suppress

from jmsjca.config import ConnectionURL
from jmsjca.errors import InvalidOptionError, JMSError, NotSupportedError, StoreError
from jmsjca.links import ConnectionSettings, connect
from jmsjca.management.demo.settings import DemoSettings
from jmsjca.outbound import ConnectionFactory

__all__ = ["check_broker", "clean_up", "subscribe"]

_NEEDED = ("transacted_receive", "transacted_send", "durable")


def check_broker(url: str) -> None:
    """Refuse a broker that will not do.

    Raises:
        NotSupportedError: It cannot do what the run needs; the message names it.
        InvalidOptionError: The URL is that of a file that cannot be used.
        JMSError: It cannot be reached, or refuses.
    """
    shown = ConnectionURL.parse(url)  # without its password
    try:
        connection = connect(ConnectionSettings(url))
    except StoreError as error:
        raise InvalidOptionError(f"--url {shown}: {error} Name another file.") from error
    can = connection.capabilities
    connection.close()
    if not can.shared_between_processes:
        raise NotSupportedError(f"--url {shown} cannot serve several processes; use a file: embedded:///folder/file.db")
    missing = [name for name in _NEEDED if not getattr(can, name)]
    if missing:
        raise NotSupportedError(
            f"--url {shown}: the demo needs {' and '.join(missing)}, which this broker does not offer over "
            f"{shown.protocol}://. Name another broker, or another protocol."
        )


def subscribe(settings: DemoSettings) -> None:
    """Make the subscriptions, before anything is published."""
    for subscription in (settings.audit, settings.totals):
        factory = ConnectionFactory(settings.url, client_id=subscription.client_id)
        with factory.create_connection() as connection, connection.create_session() as session:
            session.create_durable_consumer(subscription.topic, str(subscription.name))


def clean_up(settings: DemoSettings) -> None:
    """Remove what the run has made at a broker that it shares, as far as the broker lets it."""
    if not settings.shared:
        return
    for what in (settings.totals, settings.audit, settings.flights, settings.dead_letters):
        client_id = what.client_id if what in (settings.totals, settings.audit) else None
        with suppress(JMSError):  # all is counted by now; what is left is empty, and nobody else's name
            connection = connect(ConnectionSettings(settings.url, client_id=client_id))
            try:
                connection.remove(what)
            finally:
                connection.close()
