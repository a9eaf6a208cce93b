"""Cases for listeners to topics: one receiver in mode sync, several handlers in mode cc, durable subscriptions."""

from __future__ import annotations

import queue
import uuid
from threading import Barrier
from typing import Any

import pytest

from jmsjca import Message, Outcome
from jmsjca.testing.contract.harness import PATIENCE
from jmsjca.testing.inbound.harness import ListenerContract, ListenerHarness

__all__ = ["TestDurableListeners", "TestTopicListeners"]


class TestTopicListeners(ListenerContract):
    """Topics (JMSJCA manual, concurrency modes; JMS 3.1, section 4.2)."""

    @pytest.mark.parametrize("mode", ["serial", "sync"])
    def test_one_receiver_gets_each_message_once(self, stage: ListenerHarness, mode: str) -> None:
        """Each of several would get every message; so the order is kept, too."""
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
