"""The listener of the results: adds up the delays by airport as they come."""

import json
import time
from dataclasses import dataclass, field

from jmsjca.adapter import ResourceAdapter
from jmsjca.management.demo.settings import CLIENT_ID, RESULTS, TOTALS
from jmsjca.messages import Message

__all__ = ["Totals", "listen"]

_WAIT = 0.5  # seconds between two results from which on the listener had nothing to do


@dataclass
class Totals:
    """What the listener has added up.

    Attributes:
        results: How many results came.
        flights: How many flights they speak of.
        delay: Minutes of delay, by airport.
        latest: When the latest result came, on the performance counter.
        seconds: How long results were coming; waits for the next batch are left out.
    """

    results: int = 0
    flights: int = 0
    delay: dict[str, int] = field(default_factory=dict[str, int])
    seconds: float = 0.0
    latest: float = 0.0

    def add(self, airport: str, flights: int, delay: int) -> None:
        """Add one result."""
        now = time.perf_counter()
        self.seconds += now - self.latest if now - self.latest < _WAIT else 0.0
        self.latest = now
        self.results += 1
        self.flights += flights
        self.delay[airport] = self.delay.get(airport, 0) + delay


def listen(adapter: ResourceAdapter, totals: Totals) -> None:
    """Declare the listener."""

    @adapter.listener(RESULTS, subscription_durability="Durable", subscription_name=TOTALS, client_id=CLIENT_ID)
    def on_result(message: Message) -> None:
        """Add up one result."""
        result = json.loads(message.get_body(str))
        totals.add(result["airport"], result["flights"], result["delay"])
