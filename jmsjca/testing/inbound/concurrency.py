"""Cases for handlers that run side by side, also of topics, and for stopping."""

from __future__ import annotations

import queue
import uuid
from threading import Barrier, Event
from typing import Any

import pytest

from jmsjca import Message, Outcome, Session
from jmsjca.errors import IllegalStateError
from jmsjca.testing.contract.harness import PATIENCE
from jmsjca.testing.inbound.harness import HandlerFailed, ListenerContract, ListenerHarness, forward

__all__ = ["TestConcurrency", "TestDurableListeners", "TestStopping", "TestTopicListeners"]

modes = pytest.mark.parametrize("mode", ["sync", "cc"])


class TestConcurrency(ListenerContract):
    """Several handlers at work (JMSJCA manual, concurrency modes)."""

    @modes
    def test_so_many_handlers_are_inside_at_once(self, stage: ListenerHarness, mode: str) -> None:
        """As many as the pool has: each handler waits for all others. There are enough messages for every receiver."""
        together = Event()
        meeting = Barrier(5, action=together.set, timeout=PATIENCE)

        def _handler() -> None:
            if not together.is_set():
                meeting.wait()

        activation = stage.listen(_handler, concurrency_mode=mode, endpoint_pool_max_size=5)
        stage.send(*(f"{number:02}" for number in range(50)))
        stage.heard.await_outcome(Outcome.COMMITTED, 50)
        assert activation.stats.n_highest_active_endpoints == 5
        assert activation.stats.n_configured_endpoints == 5

    def test_serial_has_one(self, stage: ListenerHarness) -> None:
        """Serial has one handler, whatever the size of the pool."""
        activation = stage.listen(Message.clear_properties, concurrency_mode="serial", endpoint_pool_max_size=5)
        stage.send(*"abcdefghij")
        stage.heard.await_outcome(Outcome.COMMITTED, 10)
        assert activation.stats.n_highest_active_endpoints == activation.stats.n_configured_endpoints == 1

    @modes
    def test_a_blocked_handler_holds_up_nobody(self, stage: ListenerHarness, mode: str) -> None:
        """Not even messages prefetched with its message, where a receiver can limit its prefetch."""
        if mode == "sync":
            stage.harness.require("exact_credit")
        go_on = Event()

        def _handler(message: Message) -> None:
            if message.body == "slow":
                go_on.wait(PATIENCE)

        stage.send(*(f"{number:03}" for number in range(300)), "slow", *(f"{number:03}" for number in range(30)))
        stage.listen(_handler, concurrency_mode=mode, endpoint_pool_max_size=2)
        stage.heard.await_outcome(Outcome.COMMITTED, 330)
        go_on.set()
        stage.heard.await_outcome(Outcome.COMMITTED)

    def test_what_is_behind_a_blocked_handler_is_for_others(self, stage: ListenerHarness) -> None:
        """Receivers of mode sync keep nothing back when all their handlers are slow, where they can say so."""
        stage.harness.require("exact_credit")
        go_on, inside = Event(), queue.Queue[str]()

        def _handler(message: Message) -> None:
            if int(message.body) >= 300:
                inside.put(message.body)
                go_on.wait(PATIENCE)

        stage.send(*(f"{number:03}" for number in range(330)))
        stage.listen(_handler, concurrency_mode="sync", endpoint_pool_max_size=2)
        blocked = [inside.get(timeout=PATIENCE) for _ in range(2)]
        others = stage.arrive(stage.source, 28)
        assert sorted([*blocked, *others]) == [f"{number:03}" for number in range(300, 330)]
        go_on.set()
        stage.heard.await_outcome(Outcome.COMMITTED, 302)

    @modes
    def test_a_delayed_message_holds_up_nobody(self, stage: ListenerHarness, mode: str) -> None:
        """Neither a thread nor what comes behind it: with one handler all others are served."""
        seen: queue.Queue[str] = queue.Queue()

        def _handler(message: Message) -> None:
            seen.put(message.body)
            if message.body == "delayed":
                raise HandlerFailed

        stage.send("delayed")
        stage.listen(_handler, concurrency_mode=mode, endpoint_pool_max_size=1, redelivery_handling="1:3600000")
        stage.heard.await_outcome(Outcome.ROLLED_BACK)
        stage.send(*(f"{number:02}" for number in range(30)))
        stage.heard.await_outcome(Outcome.COMMITTED, 30)
        stage.adapter.stop()
        assert list(seen.queue).count("delayed") == 1
        stage.expect_count(stage.source, 1)

    def test_a_delayed_message_holds_up_what_comes_behind_it_in_serial(self, stage: ListenerHarness) -> None:
        """Order is kept."""
        seen: list[str] = []

        def _handler(message: Message) -> None:
            seen.append(message.body)
            if len(seen) < 4:
                raise HandlerFailed

        stage.send(*"ab")
        stage.listen(_handler, redelivery_handling="1:20")
        stage.heard.await_outcome(Outcome.COMMITTED, 2)
        assert seen == ["a", "a", "a", "a", "b"]


class TestStopping(ListenerContract):
    """A stop loses nothing and doubles nothing (JMSJCA manual, message wrapping and life cycle)."""

    @pytest.mark.parametrize("name", ["_JMSJCA_StopMessageDelivery", "JMS_Sun_JMSJCA_StopMessageDelivery"])
    def test_by_the_handler(self, stage: ListenerHarness, name: str) -> None:
        """Forwarded and remaining messages are all messages (JMSJCA: testStopFromMDB)."""
        stage.harness.require("atomic")

        def _handler(message: Message, session: Session) -> None:
            forward(message, session, stage.out)
            if message.body == "0010":
                message.set_string_property(name, "Some reason")
            if message.body >= "0010":
                stage.heard.stopping.wait(PATIENCE)

        bodies = stage.send_many()
        stage.listen(_handler, concurrency_mode="sync", options={"JMSJCA.messagewrapping": "1"})
        stage.heard.await_status("Down")
        forwarded = stage.remaining(stage.out)
        assert len(set(forwarded)) == len(forwarded) < len(bodies)
        stage.expect_remaining(stage.source, *set(bodies).difference(forwarded))

    @pytest.mark.parametrize("batch_size", [0, 3])
    @pytest.mark.parametrize("mode", ["sync", "cc"])
    def test_while_messages_are_held(self, stage: ListenerHarness, mode: str, batch_size: int) -> None:
        """They are rolled back, and a later acknowledgement reports it (JMSJCA manual, hold-until-acknowledge)."""
        held: queue.Queue[Message] = queue.Queue()
        spec = {"concurrency_mode": mode, "batch_size": batch_size, "max_outstanding": stage.many}
        stage.listen(held.put, hold_until_ack=True, endpoint_pool_max_size=4, **spec)
        bodies = stage.send_many()
        messages = [held.get(timeout=PATIENCE) for _ in range(stage.many)]
        stage.adapter.stop()
        for message in messages[:3]:
            assert message.acknowledge().wait(PATIENCE) is Outcome.ROLLED_BACK
        with pytest.raises(IllegalStateError):
            messages[-1].set_rollback_only()
        stage.expect_remaining(stage.source, *bodies)


class TestTopicListeners(ListenerContract):
    """Topics (JMSJCA manual, concurrency modes; JMS 3.1, section 4.2)."""

    @pytest.mark.parametrize("mode", ["serial", "sync"])
    def test_one_receiver_gets_each_message_once(self, stage: ListenerHarness, mode: str) -> None:
        """Several consumers would each get every message, so there is one; this also keeps the order."""
        topic, bodies = stage.harness.topic(), [f"{number:02}" for number in range(30)]
        seen: queue.Queue[str] = queue.Queue()

        def _handler(message: Message) -> None:
            seen.put(message.body)

        activation = stage.listen(_handler, destination=topic, concurrency_mode=mode)
        stage.heard.await_status("Up")
        assert activation.stats.n_configured_endpoints == 1
        stage.harness.send(topic, *bodies)
        stage.heard.await_outcome(Outcome.COMMITTED, 30)
        stage.adapter.stop()
        assert list(seen.queue) == bodies

    def test_several_handlers_share_one_consumer(self, stage: ListenerHarness) -> None:
        """They are inside at once, and each message comes once."""
        topic, meeting = stage.harness.topic(), Barrier(5, timeout=PATIENCE)
        stage.listen(meeting.wait, destination=topic, concurrency_mode="cc", endpoint_pool_max_size=5)
        stage.heard.await_status("Up")
        stage.harness.send(topic, *"abcdefghij")
        stage.heard.await_outcome(Outcome.COMMITTED, 10)


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
class TestDurableListeners(ListenerContract):
    """Durable subscriptions (JMSJCA manual, activation spec; JMS 3.1, section 8.3.3)."""

    needs = ("durable",)

    @pytest.fixture
    def durable(self, stage: ListenerHarness, mode: str) -> dict[str, Any]:
        """Return the fields of a spec for a unique subscription."""
        name, client = (f"{what}-{uuid.uuid4().hex}" for what in ("s", "client"))
        subscription = {"subscription_durability": "Durable", "subscription_name": name, "client_id": client}
        return {"destination": stage.harness.topic(), "concurrency_mode": mode, **subscription}

    def test_what_is_sent_meanwhile_waits(self, stage: ListenerHarness, durable: dict[str, Any]) -> None:
        """From the first start on, whether the listener is up or not."""
        seen: queue.Queue[str] = queue.Queue()

        def _handler(message: Message) -> None:
            seen.put(message.body)

        activation = stage.listen(_handler, **durable)
        stage.heard.await_status("Up")
        activation.stop()
        stage.harness.send(durable["destination"], "meanwhile")
        activation.start()
        assert seen.get(timeout=PATIENCE) == "meanwhile"

    def test_a_moved_message_tells_the_subscription(self, stage: ListenerHarness, durable: dict[str, Any]) -> None:
        """Its name, the client id, and that it was a topic (JMSJCA manual, redelivery handling)."""
        handling = f"1:move(queue:{stage.out.name})"
        stage.listen(Message.set_rollback_only, redelivery_handling=handling, **durable)
        stage.heard.await_status("Up")
        stage.harness.send(durable["destination"], "a")
        [delivery] = stage.harness.gather(stage.harness.connection.consumer(stage.out), 1)
        told = {
            "OriginalDestinationName": durable["destination"].name,
            "OriginalDestinationType": "javax.jms.Topic",
            "SubscriberName": durable["subscription_name"],
            "OriginalClientID": durable["client_id"],
        }
        for prefix in ("_JMSJCA_", "JMS_Sun_JMSJCA_"):
            assert {name: delivery.message.properties.get(prefix + name) for name in told} == told
