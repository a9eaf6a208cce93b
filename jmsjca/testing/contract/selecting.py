"""Selectors: the broker filters, so what is not selected stays for others."""

from __future__ import annotations

import pytest

from jmsjca.destinations import Queue
from jmsjca.errors import InvalidSelectorError
from jmsjca.messages import TextMessage
from jmsjca.testing.contract.harness import Contract, Harness, bodies

__all__ = ["TestSelectors"]


class TestSelectors(Contract):
    """Message selection (JMS 3.1, section 3.8; capability selectors)."""

    @pytest.fixture(autouse=True)
    def _needs_selectors(self, harness: Harness) -> None:
        harness.require("selectors")

    @pytest.mark.parametrize(
        ("selector", "selected"),
        [
            ("region = 'EU'", ["a", "c"]),
            ("size > 2", ["b", "c"]),
            ("region = 'EU' AND size > 2", ["c"]),
            ("urgent = TRUE", ["b"]),
            ("region LIKE 'E%' OR size = 3", ["a", "b", "c"]),
        ],
    )
    def test_consumer_gets_what_it_selects(self, harness: Harness, selector: str, selected: list[str]) -> None:
        """Strings, numbers and booleans are compared as what they are."""
        queue = _queue_of_three(harness)
        consumer = harness.connection.consumer(queue, selector=selector)
        chosen = harness.gather(consumer, len(selected))
        assert bodies(chosen) == selected
        harness.settle(chosen)
        harness.connection.close()
        harness.expect(queue, *(body for body in "abc" if body not in selected))

    def test_subscriber_gets_what_it_selects(self, harness: Harness) -> None:
        """What a subscriber does not select is not sent to it."""
        topic = harness.topic()
        consumer = harness.connection.consumer(topic, selector="region = 'EU'")
        harness.send_messages(topic, *_three())
        assert bodies(harness.gather(consumer, 2)) == ["a", "c"]

    def test_browser_shows_what_it_selects(self, harness: Harness) -> None:
        """A browser can filter, too."""
        harness.require("browse")
        queue = _queue_of_three(harness)
        chunks = list(harness.connection.browse(queue, selector="region = 'EU'"))
        assert [body for chunk in chunks for body in bodies(chunk)] == ["a", "c"]

    def test_invalid_selector_is_refused(self, harness: Harness) -> None:
        """An error when the consumer is made (JMS 3.1, section 3.8.1.1: InvalidSelectorException)."""
        with pytest.raises(InvalidSelectorError):
            harness.connection.consumer(harness.queue(), selector="region = = 'EU'")


def _three() -> list[TextMessage]:
    regions = {"a": ("EU", 1, False), "b": ("US", 3, True), "c": ("EU", 5, False)}
    return [
        TextMessage(body, properties={"region": region, "size": size, "urgent": urgent})
        for body, (region, size, urgent) in regions.items()
    ]


def _queue_of_three(harness: Harness) -> Queue:
    queue = harness.queue()
    harness.send_messages(queue, *_three())
    return queue
