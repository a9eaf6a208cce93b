"""Settings that the processes of one run share, and what the run needs from the broker."""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from jmsjca.config import ConnectionURL
from jmsjca.destinations import Queue, Subscription, Topic
from jmsjca.errors import InvalidOptionError, JMSError, NotSupportedError, StoreError
from jmsjca.outbound import ConnectionFactory
from jmsjca.reconnection import ConnectionSettings, connect

__all__ = ["DemoSettings", "check_broker", "clean_up", "subscribe"]

_CLIENT = "jmsjca-demo"


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """One run.

    Args:
        folder: Where everything of this run lies.
        url: The broker.
        airports: A CSV file to join; None for none.
        batch: How many messages a micro-batch takes at most.
        run: The name of the run, part of the ids by which what is sent again is recognised.
        shared: True if others use the broker, too: then all names are this run's own.
        patience: After so many seconds without progress a step is given up.
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
        """Where the events go."""
        return Queue(self._name("flights"))

    @property
    def dead_letters(self) -> Queue:
        """Where that goes which is no event."""
        return Queue(self._name("dlq.flights"))

    @property
    def results(self) -> Topic:
        """Where the delays by airport go."""
        return Topic(self._name("delays"))

    @property
    def totals(self) -> Subscription:
        """The listener's subscription of the results."""
        return self._subscription("totals")

    @property
    def audit(self) -> Subscription:
        """The subscription of the results that the account is made from."""
        return self._subscription("audit")

    def path(self, name: str) -> Path:
        """A file or folder of this run."""
        return Path(self.folder) / name

    @property
    def journal(self) -> Path:
        """The ids, noted before each send."""
        return self.path("sent.ids")

    @property
    def all_sent(self) -> Path:
        """Exists once the last event is sent."""
        return self.path("all-sent")

    @property
    def batches(self) -> Path:
        """One line per processed micro-batch."""
        return self.path("batches.jsonl")

    @property
    def events(self) -> Path:
        """The processed events, as Parquet."""
        return self.path("events.parquet")

    @property
    def delays(self) -> Path:
        """The delays by airport, as Parquet."""
        return self.path("delays.parquet")

    @property
    def checkpoint(self) -> Path:
        """The checkpoint of the query."""
        return self.path("checkpoint")

    @property
    def staging(self) -> Path:
        """The messages that the query has received."""
        return self.path("staging")

    def save(self) -> Path:
        """Write the settings for the other processes."""
        file = self.path("settings.json")
        file.touch(mode=0o600)  # the URL may hold a password
        file.write_text(json.dumps(asdict(self), indent=2))
        return file

    @classmethod
    def load(cls, file: str) -> Self:
        """Read what `save` wrote.

        Raises:
            InvalidOptionError: The file cannot be read.
        """
        try:
            return cls(**json.loads(Path(file).read_text()))
        except (OSError, ValueError, TypeError) as error:
            raise InvalidOptionError(f"{file} is not the settings file of a run: {error}.") from error

    def _name(self, plain: str) -> str:
        return f"{plain}.{self.run}" if self.shared else plain

    def _subscription(self, name: str) -> Subscription:
        # A client id may be one connection's only, so each subscription has its own.
        return Subscription(self.results, name, f"{self._name(_CLIENT)}-{name}")


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
