"""Client ids: who may have one, and what is kept under it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jmsjca.errors import ConnectionLostError, InvalidClientIDError
from jmsjca.testing.contract.harness import Contract, Harness

__all__ = ["TestClientIds"]


class TestClientIds(Contract):
    """Client identifiers (JMS 3.1, section 6.1.2; capability client_ids)."""

    @pytest.fixture(autouse=True)
    def _needs_client_ids(self, harness: Harness) -> None:
        harness.require("client_ids")

    def test_one_in_use_is_refused(self, harness: Harness) -> None:
        """A client's state is used by one client at a time (JMS 3.1, sections 6.1.2 and 10.3)."""
        client = _client(harness)
        first = harness.connect(client)
        with pytest.raises(InvalidClientIDError, match=client):
            _connect(harness, client)
        harness.settle([], first)  # which notices nothing

    def test_it_is_free_after_closing(self, harness: Harness) -> None:
        """Closing releases all that a connection had (JMS 3.1, sections 6.1.2 and 6.1.8)."""
        client = _client(harness)
        for _ in range(3):
            harness.connect(client).close()
        harness.connect(client)

    def test_refused_attempt_leaves_it_to_its_holder(self, harness: Harness) -> None:
        """Whoever was refused has taken nothing away, and gets it later (JMS 3.1, section 6.1.2)."""
        client = _client(harness)
        holder = harness.connect(client)
        for _ in range(2):
            with pytest.raises(InvalidClientIDError):
                _connect(harness, client)
        holder.close()
        harness.connect(client)

    def test_closing_twice_does_not_free_that_of_another(self, harness: Harness) -> None:
        """Only who has it can let it go (JMS 3.1, sections 6.1.2 and 6.1.8)."""
        client = _client(harness)
        first = harness.connect(client)
        first.close()
        harness.connect(client)
        first.close()
        with pytest.raises(InvalidClientIDError):
            _connect(harness, client)

    def test_different_ones_do_not_disturb_each_other(self, harness: Harness) -> None:
        """They are compared as they are, capitals and blanks included (JMS 3.1, section 6.1.2)."""
        client = _client(harness)
        for other in (client, client.upper(), f"{client} ", f"{client}.s"):
            harness.connect(other)

    def test_connections_without_one_are_as_many_as_you_like(self, harness: Harness) -> None:
        """Nothing is kept for them, so nothing is in use (JMS 3.1, section 6.1.2)."""
        queue = harness.queue()
        for body in "abc":
            unit = harness.unit(harness.connect())
            harness.note(unit, queue, body)
            unit.commit()
        harness.expect(queue, "a", "b", "c")

    def test_durable_subscription_waits_for_its_client(self, harness: Harness) -> None:
        """What a client id identifies is found again under it, and under no other (JMS 3.1, section 6.1.2)."""
        harness.require("durable")
        subscription = harness.subscription()
        connection = harness.connect(subscription.client_id)
        connection.consumer(subscription)
        harness.send(subscription.topic, "a")
        connection.close()
        other = replace(subscription, client_id=_client(harness))
        harness.expect(other)
        consumer = harness.connect(subscription.client_id).consumer(subscription)
        assert harness.gather(consumer, 1)[0].message.body == "a"


def _connect(harness: Harness, client: str) -> None:
    """Connect; once more if the broker hangs up: in 1 of 3,000 refusals ActiveMQ does, over STOMP, and says nothing."""
    try:
        harness.connect(client)
    except ConnectionLostError:
        harness.connect(client)


def _client(harness: Harness) -> str:
    """A client id that nobody else uses."""
    client = harness.subscription().client_id
    assert client is not None
    return client
