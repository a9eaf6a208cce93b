"""What the processes of one run share: where things are, and how much there is."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from jmsjca.destinations import Queue, Topic
from jmsjca.errors import InvalidOptionError

__all__ = ["AUDIT", "CLIENT_ID", "DEAD_LETTERS", "FLIGHTS", "RESULTS", "TOTALS", "DemoSettings"]

FLIGHTS = Queue("flights")
DEAD_LETTERS = Queue("dlq.flights")
RESULTS = Topic("delays")
CLIENT_ID = "jmsjca-demo"
TOTALS, AUDIT = "totals", "audit"
"""The durable subscriptions of the results: the listener's, and the one that the account is made from."""


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """One run.

    Args:
        folder: Where everything of this run lies.
        url: The broker.
        airports: A CSV file to join; None for none.
        batch: How many messages a micro-batch takes at most.
        run: The name of the run, part of the ids by which what is sent again is recognised.
    """

    folder: str
    url: str
    airports: str | None
    batch: int
    run: str

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
