"""The listener of the results: adds up the delays by airport as they come."""

import json
import time
from dataclasses import dataclass, field

from jmsjca.adapter import ResourceAdapter
from jmsjca.management.demo.repeats import Repeats
from jmsjca.management.demo.settings import DemoSettings
from jmsjca.messages import DUPLICATE_ID, Message

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


def listen(adapter: ResourceAdapter, settings: DemoSettings, totals: Totals) -> None:
    """Declare the listener."""
    repeats = Repeats()
    totals_of = settings.totals

    @adapter.listener(
        totals_of.topic,
        subscription_durability="Durable",
        subscription_name=totals_of.name,
        client_id=totals_of.client_id,
    )
    def on_result(message: Message) -> None:
        """Add up one result, unless it was sent again or came again."""
        body = message.get_body(str)
        if not repeats.is_repeat(message.get_string_property(DUPLICATE_ID), body):
            result = json.loads(body)
            totals.add(result["airport"], result["flights"], result["delay"])
