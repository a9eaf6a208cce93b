"""What the processes of one run share: where things are, and how much there is."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from jmsjca.destinations import Queue, Subscription, Topic
from jmsjca.errors import InvalidOptionError

__all__ = ["DemoSettings"]

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
