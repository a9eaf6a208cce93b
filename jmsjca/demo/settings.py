"""Settings shared by the processes of one run, and the requirements on the broker."""

import json
import re
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from jmsjca.config import ConnectionURL
from jmsjca.config.limits import AcknowledgeMode
from jmsjca.destinations import Queue, Subscription, Topic
from jmsjca.errors import InvalidOptionError, JMSError, NotSupportedError, StoreError
from jmsjca.outbound import Connection, ConnectionFactory, Session
from jmsjca.reconnection import ConnectionSettings, connect

__all__ = ["DemoSettings", "check_broker", "clean_up", "open_session", "subscribe"]

_CLIENT = "jmsjca-demo"


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """The settings of one run.

    Args:
        folder: The folder with all files of the run.
        url: The URL of the broker.
        airports: The CSV file of airports to join; None joins nothing.
        batch: Maximum number of messages in a micro-batch.
        run: The name of the run; part of the ids for duplicate detection.
        shared: True if other applications use the broker: destination names are then unique to the run.
        patience: Seconds without progress after which a step is abandoned.
    """

    folder: str
    url: str = field(repr=False)  # may hold a password
    airports: str | None
    batch: int
    run: str
    shared: bool = False
    patience: float = 60.0

    @property
    def flights(self) -> Queue:
        """The queue of the events."""
        return Queue(self._name("flights"))

    @property
    def dead_letters(self) -> Queue:
        """The dead-letter queue for messages that are not events."""
        return Queue(self._name("dlq.flights"))

    @property
    def results(self) -> Topic:
        """The topic of the delays by airport."""
        return Topic(self._name("delays"))

    @property
    def totals(self) -> Subscription:
        """The subscription of the listener to the results."""
        return self._subscription("totals")

    @property
    def audit(self) -> Subscription:
        """The subscription to the results that the account is based on."""
        return self._subscription("audit")

    def path(self, name: str) -> Path:
        """Return the path of a file or folder of this run."""
        return Path(self.folder) / name

    @property
    def journal(self) -> Path:
        """The file of event ids, written before each send."""
        return self.path("sent.ids")

    @property
    def all_sent(self) -> Path:
        """The file that is created after the last event is sent."""
        return self.path("all-sent")

    @property
    def batches(self) -> Path:
        """The file with one line for each processed micro-batch."""
        return self.path("batches.jsonl")

    @property
    def events(self) -> Path:
        """The Parquet folder of the processed events."""
        return self.path("events.parquet")

    @property
    def delays(self) -> Path:
        """The Parquet folder of the delays by airport."""
        return self.path("delays.parquet")

    @property
    def checkpoint(self) -> Path:
        """The checkpoint folder of the query."""
        return self.path("checkpoint")

    @property
    def staging(self) -> Path:
        """The staging folder for messages that the query has received."""
        return self.path("staging")

    def save(self) -> Path:
        """Write the settings for the other processes."""
        file = self.path("settings.json")
        file.touch(mode=0o600)  # the URL may hold a password
        file.write_text(json.dumps(asdict(self), indent=2))
        return file

    @classmethod
    def load(cls, file: str) -> Self:
        """Read the settings that `save` wrote.

        Raises:
            InvalidOptionError: The file cannot be read.
        """
        try:
            return cls(**json.loads(Path(file).read_text()))
        except (OSError, ValueError, TypeError) as error:
            raise InvalidOptionError(f"{file} is not the settings file of a run: {error}.") from error

    def _name(self, plain: str) -> str:
        if not self.shared:
            return plain
        return re.sub(r"\W", "_", f"{plain}.{self.run}")  # Open MQ takes identifiers only

    def _subscription(self, name: str) -> Subscription:
        # Only one connection may use a client id, so each subscription has its own.
        return Subscription(self.results, name, f"{self._name(_CLIENT)}-{name}")


_NEEDED = ("durable",)


def check_broker(url: str) -> None:
    """Raise an error if the broker cannot run the demo.

    Raises:
        NotSupportedError: The broker lacks a capability; the message names it.
        InvalidOptionError: The URL names a broker file that cannot be used.
        JMSError: The broker cannot be reached, or refuses the connection.
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


def open_session(connection: Connection) -> Session:
    """Open a session that settles several messages at a time: transacted, or by `acknowledge` without transactions."""
    return connection.create_session(connection.capabilities.atomic, AcknowledgeMode.CLIENT)


def subscribe(settings: DemoSettings) -> None:
    """Create the subscriptions, before the first result is published."""
    for subscription in (settings.audit, settings.totals):
        factory = ConnectionFactory(settings.url, client_id=subscription.client_id)
        with factory.create_connection() as connection, connection.create_session() as session:
            session.create_durable_consumer(subscription.topic, str(subscription.name))


def clean_up(settings: DemoSettings) -> None:
    """Remove the destinations and subscriptions of the run from a shared broker, where the broker permits it."""
    if not settings.shared:
        return
    for what in (settings.totals, settings.audit, settings.flights, settings.dead_letters):
        client_id = what.client_id if what in (settings.totals, settings.audit) else None
        with suppress(JMSError):  # the account is complete; the destinations are empty and unique to this run
            connection = connect(ConnectionSettings(settings.url, client_id=client_id))
            try:
                connection.remove(what)
            finally:
                connection.close()
