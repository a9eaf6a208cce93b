"""What the user asked for, checked before anything is begun."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jmsjca.errors import InvalidOptionError
from jmsjca.management.demo.broker import check_broker
from jmsjca.management.demo.events import check_readable, generate, read_events

__all__ = ["DemoRequest"]


@dataclass(frozen=True, slots=True)
class DemoRequest:
    """The options of ``jmsjca demo``.

    Args:
        input: A file of events; None for generated ones.
        airports: A CSV file to join; None for none.
        events: How many events to generate.
        poison: The share of bodies to spoil, 0 to 1.
        crash: True to kill the query in the middle and start it again.
        url: The broker; None for an embedded one in the run's folder. On a broker that is given, others may be at
            work: every name there is the run's own, and removed at the end.
        output: Below this folder the run makes one of its own.
        seed: Which events are generated and spoiled.
        json: Where to write the account, too.
        patience: After so many seconds without progress a step is given up.
    """

    input: Path | None = None
    airports: Path | None = None
    events: int = 20_000
    poison: float = 0.0
    crash: bool = False
    url: str | None = field(default=None, repr=False)  # may hold a password
    output: Path = Path("jmsjca-demo")
    seed: int = 2001
    json: Path | None = None
    patience: float = 60.0

    def check(self) -> int:
        """Refuse what cannot be done.

        Returns:
            How many events there are.

        Raises:
            ConfigurationError: A file cannot be read, a number is out of range, the URL cannot be used.
            NotSupportedError: The broker of the URL cannot do what is needed.
            JMSError: It cannot be reached, or refuses.
        """
        if not 0 <= self.poison <= 1:
            raise InvalidOptionError(f"--poison {self.poison} must be a share between 0 and 1, for instance 0.01.")
        if self.events < 1:
            raise InvalidOptionError(f"--events {self.events} must be at least 1.")
        for option, file in (("--input", self.input), ("--airports", self.airports)):
            if file is not None:
                check_readable(file, option)
        if self.json is not None and not self.json.resolve().parent.is_dir():
            raise InvalidOptionError(f"--json {self.json} cannot be written: there is no folder {self.json.parent}.")
        if self.url is not None:
            check_broker(self.url)
        return self.events if self.input is None else sum(1 for _ in read_events(self.input))

    def stream(self) -> Iterable[dict[str, Any]]:
        """The events."""
        return generate(self.events, self.seed) if self.input is None else read_events(self.input)
