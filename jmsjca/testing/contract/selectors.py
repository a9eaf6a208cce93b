"""Selectors: the broker filters, so what is not selected stays for others."""

from __future__ import annotations

import pytest

from jmsjca.destinations import Queue
from jmsjca.errors import InvalidSelectorError
from jmsjca.messages import DeliveryMode, TextMessage
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

    @pytest.mark.parametrize(
        "selector",
        [
            "JMSPriority = 7",
            "JMSType = 'order'",
            "JMSCorrelationID = 'c-1'",
            "JMSDeliveryMode = 'NON_PERSISTENT'",
            "JMSTimestamp > 0",
            "JMSMessageID LIKE 'ID:%'",
        ],
    )
    def test_headers_can_be_selected(self, harness: Harness, selector: str) -> None:
        """These six and no others (JMS 3.1, section 3.8.1.1); what a message lacks matches nothing."""
        if "JMSMessageID" in selector:
            harness.require("exact_selectors")
        queue = harness.queue()
        message = TextMessage("a")
        message.type, message.correlation_id = "order", "c-1"
        harness.send_messages(queue, message, priority=7, delivery_mode=DeliveryMode.NON_PERSISTENT)
        assert bodies(harness.gather(harness.connection.consumer(queue, selector=selector), 1)) == ["a"]

    def test_missing_property_is_unknown(self, harness: Harness) -> None:
        """Neither equal nor different: only IS NULL is true (JMS 3.1, sections 3.8.1.1 and 3.8.1.2)."""
        harness.require("exact_selectors")
        queue = _queue_of_three(harness)
        harness.send(queue, "without")
        assert _selected(harness, queue, "region <> 'EU'") == ["b"]
        assert _selected(harness, queue, "NOT (region = 'EU')") == ["b"]
        assert _selected(harness, queue, "region IS NULL") == ["without"]

    def test_types_are_not_converted(self, harness: Harness) -> None:
        """A number in a string is no number (JMS 3.1, section 3.8.1.1)."""
        harness.require("exact_selectors")
        queue = harness.queue()
        for value in ("2", 2, 2.0, True):
            harness.send_messages(queue, TextMessage(repr(value), properties={"n": value}))
        assert _selected(harness, queue, "n = 2") == ["2", "2.0"]
        assert _selected(harness, queue, "n = '2'") == ["'2'"]
        assert _selected(harness, queue, "n = TRUE") == ["True"]

    def test_long_numbers_are_exact(self, harness: Harness) -> None:
        """Longs are compared as longs, not as doubles (JMS 3.1, section 3.8.1.1: Java numeric promotion)."""
        queue = harness.queue()
        for n in (2**53, 2**53 + 1, 2**63 - 1):
            harness.send_messages(queue, TextMessage(str(n), properties={"n": n}))
        assert _selected(harness, queue, f"n = {2**53 + 1}") == [str(2**53 + 1)]
        assert _selected(harness, queue, f"n > {2**53 + 1}") == [str(2**63 - 1)]

    def test_strings_are_compared_character_by_character(self, harness: Harness) -> None:
        """Case, blanks, quotes and what looks like SQL are nothing special (JMS 3.1, section 3.8.1.1)."""
        queue, words = harness.queue(), ["o'neil", "O'Neil", "o'neil ", "x' OR '1'='1", "grün", "%"]
        for word in words:
            harness.send_messages(queue, TextMessage(word, properties={"word": word}))
        for word in words:
            quoted = word.replace("'", "''")
            assert _selected(harness, queue, f"word = '{quoted}'") == [word]

    def test_names_are_case_sensitive(self, harness: Harness) -> None:
        """Keywords are not (JMS 3.1, section 3.8.1.1)."""
        queue = _queue_of_three(harness)
        assert _selected(harness, queue, "Region = 'EU' or SIZE > 0") == []
        assert _selected(harness, queue, "region = 'EU' aNd size between 2 and 9") == ["c"]

    def test_empty_selector_selects_all(self, harness: Harness) -> None:
        """The empty text means that there is none (JMS 3.1, section 3.8.1.1)."""
        queue = _queue_of_three(harness)
        assert bodies(harness.gather(harness.connection.consumer(queue, selector=""), 3)) == ["a", "b", "c"]

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


def _selected(harness: Harness, queue: Queue, selector: str) -> list[str]:
    """What a browser shows, as it leaves everything for the next question."""
    harness.require("browse")
    chunks = harness.connection.browse(queue, selector=selector)
    return [body for chunk in chunks for body in bodies(chunk)]


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
