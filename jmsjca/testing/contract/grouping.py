"""What the cases about message groups are written with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from jmsjca.destinations import Destination, Subscription
from jmsjca.messages import TextMessage
from jmsjca.spi import Consumer, Order
from jmsjca.testing.contract.harness import Contract, Harness

__all__ = ["Grouping", "grouped", "send_groups", "two_consumers"]


class Grouping(Contract):
    """The base of contract classes about message groups."""

    @pytest.fixture(autouse=True)
    def _needs_groups(self, harness: Harness) -> None:
        harness.require("groups", "groups_apart", "exact_credit")


def two_consumers(harness: Harness, source: Destination | Subscription) -> Sequence[Consumer]:
    """Two consumers, the first one first."""
    return [harness.connection.consumer(source, window=0, order=Order.ANY) for _ in range(2)]


def send_groups(harness: Harness, to: Destination, words: str, **headers: Any) -> None:
    """Send messages whose first character is their group; one that begins with a hyphen has none."""
    harness.send_messages(to, *(grouped(word[0], word) for word in words.split()), **headers)


def grouped(group: str, body: str) -> TextMessage:
    """A message of a group; a hyphen stands for none. Its property ``even`` tells what its last digit is."""
    if group == "-":
        return TextMessage(body)
    return TextMessage(body, properties={"JMSXGroupID": group, "even": body[-1] in "02468"})
