"""Cases for connections: closing, refusals of unsupported features, client ids."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Literal

import pytest

from jmsjca.destinations import Destination
from jmsjca.errors import ConnectionLostError, IllegalStateError, InvalidClientIDError, NotSupportedError
from jmsjca.messages import TextMessage
from jmsjca.spi import Capabilities, Unit
from jmsjca.testing.contract.harness import PATIENCE, Contract, Harness, moment

__all__ = ["TestClientIds", "TestClosing", "TestRefusals"]


class TestClosing(Contract):
    """A connection that closes takes its open units with it (design rule: such units are *lost*)."""

    def test_closing_gives_back_what_open_units_took(self, harness: Harness) -> None:
        """Deliveries of an open unit may have been seen, so they are redelivered, counted (JMS 3.1, section 6.1.8)."""
        harness.require("delivery_count")
        harness.require_release("uncounted")
        queue = harness.queue()
        harness.send(queue, *"ab")
        _hold_first_of_two(harness, queue)
        harness.connection.close()
        again = harness.gather(harness.connect().consumer(queue), 2)
        assert [(d.message.body, d.count) for d in again] == [("a", 2), ("b", 1)]

    def test_closing_counts_only_what_was_handed_over(self, harness: Harness) -> None:
        """No handler has seen the others of an open unit (capability counts_handovers)."""
        harness.require("counts_handovers")
        queue = harness.queue()
        harness.send(queue, *"abc")
        consumer = harness.connection.consumer(queue)
        held = harness.gather(consumer, 3)
        harness.holding(held[:2])
        consumer.hand_over(held[:1])
        harness.connection.close()
        again = harness.gather(harness.connect().consumer(queue), 3)
        assert [(d.message.body, d.count) for d in again] == [("a", 2), ("b", 1), ("c", 1)]

    def test_handing_over_twice_counts_once(self, harness: Harness) -> None:
        """A delivery is one attempt, even if two callers record it (capability counts_handovers)."""
        harness.require("counts_handovers")
        queue = harness.queue()
        harness.send(queue, "a")
        connection = harness.connect()
        consumer = connection.consumer(queue)
        held = harness.gather(consumer, 1)
        harness.holding(held, connection)
        consumer.hand_over(held)
        consumer.hand_over(held)
        connection.close()
        [again] = harness.gather(harness.connection.consumer(queue), 1)
        assert again.count == 2

    def test_handing_over_what_is_settled_has_no_effect(self, harness: Harness) -> None:
        """A session records the hand-over of a delivery that it has already acknowledged."""
        harness.require_any_unit()
        queue = harness.queue()
        harness.send(queue, *"ab")
        consumer = harness.connection.consumer(queue)
        held = harness.gather(consumer, 2)
        harness.settle(held[:1])
        consumer.hand_over(held[:1])
        harness.settle(held[1:])
        consumer.close()
        harness.expect(queue)

    def test_lost_unit_says_so(self, harness: Harness) -> None:
        """Its commit fails: nothing was sent, and its deliveries are redelivered."""
        source, target = harness.queue(), harness.queue()
        harness.send(source, *"ab")
        unit = _hold_first_of_two(harness, source)
        harness.record(unit, target, "never")
        harness.connection.close()
        with pytest.raises(ConnectionLostError):
            unit.commit()
        harness.expect(target)
        harness.expect(source, "a", "b")

    def test_lost_unit_takes_and_sends_nothing_more(self, harness: Harness) -> None:
        """Further calls on a lost unit fail at once."""
        queue = harness.queue()
        unit = harness.unit()
        harness.connection.close()
        with pytest.raises(ConnectionLostError):
            harness.record(unit, queue, "never")
        with pytest.raises(ConnectionLostError):
            unit.rollback()

    def test_closing_twice_does_nothing(self, harness: Harness) -> None:
        """Closing a closed connection has no effect (JMS 3.1, section 6.1.8)."""
        harness.connection.close()
        harness.connection.close()

    def test_closed_connection_refuses(self, harness: Harness) -> None:
        """A closed connection makes nothing (JMS 3.1, section 6.1.8: IllegalStateException)."""
        queue = harness.queue()
        harness.connection.close()
        with pytest.raises(IllegalStateError):
            harness.connection.consumer(queue)
        with pytest.raises(IllegalStateError):
            harness.connection.unit()
        with pytest.raises(IllegalStateError):
            list(harness.connection.browse(queue))

    def test_closing_ends_a_waiting_receive(self, harness: Harness) -> None:
        """A receive that waits while its connection closes ends (JMS 3.1, section 6.1.8); a later one fails."""
        consumer = harness.connection.consumer(harness.queue())
        waiting = harness.in_background(consumer.receive, 1, None)
        harness.connection.close()
        error = waiting.exception(PATIENCE)
        assert error is None or isinstance(error, (ConnectionLostError, IllegalStateError))
        assert error is not None or list(waiting.result()) == []

    def test_connections_are_independent(self, harness: Harness) -> None:
        """Closing one connection disturbs no unit of another."""
        queue = harness.queue()
        harness.send(queue, *"ab")
        other = harness.connect()
        consumer = other.consumer(queue)
        unit = harness.holding(harness.gather(consumer, 1), other)
        harness.connection.close()
        unit.commit()
        consumer.close()
        harness.expect(queue, "b")


class TestRefusals(Contract):
    """Capabilities are data; what a broker cannot do is refused, never weakened (design rule)."""

    def test_capabilities_are_complete(self, harness: Harness) -> None:
        """Every field has a value of its kind."""
        capabilities = harness.connection.capabilities
        assert isinstance(capabilities, Capabilities)
        assert capabilities.give_back in {"uncounted", "counted", "local", "none"}
        assert capabilities.units in {"any", "receive"}
        flags = [f.name for f in fields(Capabilities) if f.name not in {"give_back", "units"}]
        assert all(type(getattr(capabilities, name)) is bool for name in flags)

    def test_missing_selectors_are_refused(self, harness: Harness) -> None:
        """A broker without selectors refuses one rather than to deliver everything."""
        harness.require_lack("selectors")
        with pytest.raises(NotSupportedError):
            harness.connection.consumer(harness.queue(), selector="a = 1")

    def test_missing_no_local_is_refused(self, harness: Harness) -> None:
        """A broker without no_local refuses it rather than to deliver the connection's own messages."""
        harness.require_lack("no_local")
        with pytest.raises(NotSupportedError):
            harness.connection.consumer(harness.topic(), no_local=True)

    @pytest.mark.parametrize("volatile", [True, False])
    def test_missing_sharing_is_refused(self, harness: Harness, *, volatile: bool) -> None:
        """A broker without shared subscriptions gives each consumer its own copy, so all would do all the work."""
        harness.require_lack("shared")
        subscription = replace(harness.subscription(), shared=True, volatile=volatile)
        with pytest.raises(NotSupportedError):
            harness.connect(subscription.client_id).consumer(subscription)

    def test_missing_browsing_is_refused(self, harness: Harness) -> None:
        """A broker that cannot browse says so rather than to show an empty queue."""
        harness.require_lack("browse")
        with pytest.raises(NotSupportedError):
            list(harness.connection.browse(harness.queue()))

    def test_missing_delivery_delay_is_refused(self, harness: Harness) -> None:
        """A broker without delivery delay refuses a delivery time (JMS 3.1, section 3.4.13).

        Delivered at once, the message would be too early, and the application would not notice.
        """
        harness.require_lack("delivery_delay")
        message, queue = TextMessage("tomorrow"), harness.queue()
        message.delivery_time = moment(24 * 3600)
        with pytest.raises(NotSupportedError):
            harness.unit().send(message, queue)

    def test_missing_redelivery_delay_is_refused(self, harness: Harness) -> None:
        """A broker that holds no rolled-back message refuses the delay, and the unit stays open (design rule)."""
        harness.require_lack("redelivery_delay")
        queue = harness.queue()
        harness.send(queue, "a")
        consumer = harness.connection.consumer(queue)
        unit = harness.holding(harness.gather(consumer, 1))
        with pytest.raises(NotSupportedError):
            unit.rollback(delay=60)
        unit.commit()
        consumer.close()
        harness.expect(queue)

    def test_missing_atomicity_is_refused(self, harness: Harness) -> None:
        """A unit that is not atomic is opened only for callers that ask for one with ``atomic=False``."""
        harness.require_lack("atomic")
        with pytest.raises(NotSupportedError):
            harness.connection.unit(atomic=True)

    def test_missing_durability_is_refused(self, harness: Harness) -> None:
        """A broker without durable subscriptions refuses one rather than to forget what it missed."""
        harness.require_lack("durable")
        subscription = harness.subscription()
        with pytest.raises(NotSupportedError):
            harness.connect(subscription.client_id).consumer(subscription)

    def test_missing_admin_is_none(self, harness: Harness) -> None:
        """A broker without management operations has no admin, because all its methods would fail."""
        harness.require_lack("admin")
        assert harness.connection.admin() is None

    @pytest.mark.parametrize("kind", ["queue", "topic"])
    def test_temporary_destinations(self, harness: Harness, kind: Literal["queue", "topic"]) -> None:
        """A temporary destination is of the kind asked for, or is refused (JMS 3.1, section 6.2.2)."""
        if harness.connection.capabilities.temporary:
            assert harness.connection.temporary(kind).kind == kind
        else:
            with pytest.raises(NotSupportedError):
                harness.connection.temporary(kind)

    def test_destination_that_can_be_used_passes_the_check(self, harness: Harness) -> None:
        """`check` accepts what messages were sent to."""
        queue = harness.queue()
        harness.send(queue, "a")
        harness.connection.check(queue)


def _hold_first_of_two(harness: Harness, queue: Destination) -> Unit:
    consumer = harness.connection.consumer(queue)
    first, _ = harness.gather(consumer, 2)
    unit = harness.holding([first])
    consumer.hand_over([first])
    return unit


class TestClientIds(Contract):
    """Client identifiers (JMS 3.1, section 6.1.2; capability client_ids)."""

    needs = ("client_ids",)

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
        """The refused client takes nothing away, and gets the id later (JMS 3.1, section 6.1.2)."""
        client = _client(harness)
        holder = harness.connect(client)
        for _ in range(2):
            with pytest.raises(InvalidClientIDError):
                _connect(harness, client)
        holder.close()
        harness.connect(client)

    def test_closing_twice_does_not_free_that_of_another(self, harness: Harness) -> None:
        """Only the connection that holds a client id can release it (JMS 3.1, sections 6.1.2 and 6.1.8)."""
        client = _client(harness)
        first = harness.connect(client)
        first.close()
        harness.connect(client)
        first.close()
        with pytest.raises(InvalidClientIDError):
            _connect(harness, client)

    def test_different_ones_do_not_disturb_each_other(self, harness: Harness) -> None:
        """Ids are compared exactly, including case and blanks (JMS 3.1, section 6.1.2)."""
        client = _client(harness)
        for other in (client, client.upper(), f"{client} ", f"{client}.s"):
            harness.connect(other)

    def test_connections_without_one_are_as_many_as_you_like(self, harness: Harness) -> None:
        """Connections without an id have no reserved state (JMS 3.1, section 6.1.2)."""
        queue = harness.queue()
        for body in "abc":
            unit = harness.unit(harness.connect())
            harness.record(unit, queue, body)
            unit.commit()
        harness.expect(queue, "a", "b", "c")

    def test_durable_subscription_waits_for_its_client(self, harness: Harness) -> None:
        """The state of a client id is found under this client id only (JMS 3.1, section 6.1.2)."""
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
    """Connect, with one retry: in 1 of 3,000 refusals over STOMP, ActiveMQ closes the connection without an error."""
    try:
        harness.connect(client)
    except ConnectionLostError:
        harness.connect(client)


def _client(harness: Harness) -> str:
    """Return a client id that is not in use."""
    client = harness.subscription().client_id
    assert client is not None
    return client
