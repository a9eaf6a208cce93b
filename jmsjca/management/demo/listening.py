"""The listener of the results: adds up the delays by airport as they come."""

import json
import threading
import time
from dataclasses import dataclass, field

from jmsjca.adapter import ResourceAdapter
from jmsjca.management.demo.settings import CLIENT_ID, RESULTS, TOTALS
from jmsjca.messages import Message

__all__ = ["Totals", "listen"]


@dataclass
class Totals:
    """What the listener has added up.

    Attributes:
        results: How many results came.
        flights: How many flights they speak of.
        delay: Minutes of delay, by airport.
        begin: When the first result came, on the performance counter.
        end: When the last one came.
    """

    results: int = 0
    flights: int = 0
    delay: dict[str, int] = field(default_factory=dict[str, int])
    begin: float = 0.0
    end: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def seconds(self) -> float:
        """From the first result to the last."""
        return self.end - self.begin

    def add(self, airport: str, flights: int, delay: int) -> None:
        """Add one result."""
        with self.lock:
            self.end = time.perf_counter()
            self.begin = self.begin or self.end
            self.results += 1
            self.flights += flights
            self.delay[airport] = self.delay.get(airport, 0) + delay


def listen(adapter: ResourceAdapter, totals: Totals) -> None:
    """Declare the listener."""

    @adapter.listener(RESULTS, subscription_durability="Durable", subscription_name=TOTALS, client_id=CLIENT_ID)
    def on_result(message: Message) -> None:
        result = json.loads(message.get_body(str))
        totals.add(result["airport"], result["flights"], result["delay"])
