"""Cases for held acknowledgement: who may acknowledge and when, timeouts, and that nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from jmsjca import Message, Outcome, Session, Settlement
from jmsjca.config import ActivationSpec
from jmsjca.errors import ConfigurationError, IllegalStateError
from jmsjca.testing.contract.harness import PATIENCE
from jmsjca.testing.inbound.harness import HandlerFailed, ListenerContract, ListenerHarness, SeededChance, forward

__all__ = [
    "AcknowledgingHandler",
    "HeldMessages",
    "OwnTransactionHandler",
    "TestHeldBatches",
    "TestHeldMessages",
    "TestHoldRules",
    "TestSettling",
    "TestTimeouts",
]

modes = pytest.mark.parametrize("mode", ["sync", "cc"])


class TestHeldMessages(ListenerContract):
    """Hold-until-acknowledge (JMSJCA manual, section of that name)."""

    needs = ("atomic",)

    def test_another_thread_takes_over(self, stage: ListenerHarness) -> None:
        """It sends in the delivery's unit after the handler returned; one rolls back (JMSJCA: testHUATxTakenAway)."""
        one = threading.Lock()

        def _finish(message: Message, session: Session) -> None:
            forward(message, session, stage.out)
            if one.acquire(blocking=False):
                message.set_boolean_property("JMSJCA.setRollbackOnly", True)
            message.acknowledge()

        def _handler(message: Message, session: Session) -> None:
            others.submit(_finish, message, session)

        with ThreadPoolExecutor() as others:
            stage.listen(_handler, concurrency_mode="sync", hold_until_ack=True)
            stage.many = 5
            stage.forward_many()
        assert one.locked()

    @modes
    def test_what_is_sent_belongs_to_the_unit(self, stage: ListenerHarness, mode: str) -> None:
        """Each message is forwarded once (JMSJCA: testHUAXA, testHUAXACC)."""
        stage.listen(AcknowledgingHandler(stage), concurrency_mode=mode, hold_until_ack=True)
        stage.forward_many()

    @modes
    def test_rolled_back_units_come_again(self, stage: ListenerHarness, mode: str) -> None:
        """Their sends never arrive (JMSJCA: testHUAXARB, testHUAXARBCC)."""
        stage.listen(AcknowledgingHandler(stage, rollbacks=0.05), concurrency_mode=mode, hold_until_ack=True)
        stage.forward_many()
        stage.expect_remaining(stage.never)

    @modes
    def test_transactions_of_the_handler(self, stage: ListenerHarness, mode: str) -> None:
        """The receipt has none, the handler makes its own (JMSJCA: testHUAUT, testHUAUTCC)."""
        stage.listen(OwnTransactionHandler(stage), concurrency_mode=mode, hold_until_ack=True, transaction="none")
        stage.forward_many(own_transactions=True)

    @modes
    def test_handler_rolls_back_both(self, stage: ListenerHarness, mode: str) -> None:
        """Its own transaction and the receipt (JMSJCA: testHUAUTRB, testHUAUTRBCC)."""
        handler = OwnTransactionHandler(stage, rollbacks=0.05)
        stage.listen(handler, concurrency_mode=mode, hold_until_ack=True, transaction="none")
        stage.forward_many(own_transactions=True)
        stage.expect_remaining(stage.never)


class TestHeldBatches(ListenerContract):
    """Batches that are held until all of their messages, and their ends, are acknowledged (JMSJCA manual)."""

    needs = ("atomic",)

    @modes
    def test_what_is_sent_belongs_to_the_batch(self, stage: ListenerHarness, mode: str) -> None:
        """Each message is forwarded once (JMSJCA: testBatchXAHUA, testBatchXAHUACC)."""
        stage.listen(AcknowledgingHandler(stage), concurrency_mode=mode, hold_until_ack=True, batch_size=50)
        stage.forward_many()
        assert 0 < len(stage.remaining(stage.ends)) < stage.many

    @modes
    def test_rolled_back_batches_come_again(self, stage: ListenerHarness, mode: str) -> None:
        """Their sends never arrive (JMSJCA: testBatchXAHUARB, testBatchXAHUARBCC)."""
        handler = AcknowledgingHandler(stage, rollbacks=0.05)
        stage.listen(handler, concurrency_mode=mode, hold_until_ack=True, batch_size=3)
        stage.forward_many()
        stage.expect_remaining(stage.never)
        assert 0 < len(stage.remaining(stage.ends)) < stage.many

    def test_one_message_rolls_its_batch_back(self, stage: ListenerHarness) -> None:
        """The whole batch is redelivered (JMSJCA: testHUABatchXA)."""
        one = threading.Lock()
        seen: queue.Queue[object] = queue.Queue()

        def _handler(message: Message, session: Session) -> None:
            seen.put(message.body)
            forward(message, session, stage.ends if message.end_of_batch else stage.out)
            if message.body == "0010" and one.acquire(blocking=False):
                message.set_boolean_property("JMSJCA.setRollbackOnly", True)
            message.acknowledge()

        stage.listen(_handler, concurrency_mode="sync", hold_until_ack=True, batch_size=5)
        stage.many = 50
        stage.forward_many()
        assert list(seen.queue).count("0010") == 2

    def test_what_was_in_a_failed_batch_is_moved(self, stage: ListenerHarness) -> None:
        """No message of such a batch is handled again. Each has index and size (JMSJCA: testHUABatchDlqXA)."""
        wrong: list[object] = []
        seen: queue.Queue[object] = queue.Queue()
        chance = SeededChance(0.1)

        def _handler(message: Message, session: Session) -> None:
            index, size = (message.get_int_property(f"JMSJCA.batch{name}") for name in ("Index", "Size"))
            wrong.extend([(index, size)] if size != 3 or not 0 <= index <= 3 else [])
            seen.put(message.message_id)
            forward(message, session, stage.ends if message.end_of_batch else stage.out)
            if chance(message.body):
                message.set_boolean_property("JMSJCA.setRollbackOnly", True)
            message.acknowledge()

        handling = f"1:move(queue:{stage.out.name})"
        spec = {"concurrency_mode": "sync", "hold_until_ack": True, "batch_size": 3}
        stage.listen(_handler, redelivery_handling=handling, **spec)
        stage.many = 150
        stage.forward_many()
        assert not wrong
        handled = [message_id for message_id in seen.queue if message_id is not None]
        assert len(handled) == len(set(handled))

    def test_what_always_fails_is_moved_without_a_transaction(self, stage: ListenerHarness) -> None:
        """A message or the end of its batch rolls back each time (JMSJCA: testHUABatchDlq)."""
        chance = SeededChance(0.2)

        def _handler(message: Message) -> None:
            if message.end_of_batch or chance(message.body):
                message.set_boolean_property("JMSJCA.setRollbackOnly", True)
            message.acknowledge()

        handling = f"3:move(queue:{stage.out.name})"
        spec = {"concurrency_mode": "sync", "hold_until_ack": True, "batch_size": 5, "transaction": "none"}
        stage.listen(_handler, redelivery_handling=handling, **spec)
        stage.many = 100
        stage.forward_many()


@pytest.mark.parametrize("mode", ["sync", "cc"])
class TestHoldRules(ListenerContract):
    """The rules (JMSJCA manual, hold-until-acknowledge)."""

    def test_settled_when_acknowledged_on_another_thread(self, stage: ListenerHarness, mode: str) -> None:
        """By any thread. Nothing is settled before, although the handler has returned from the first of two calls."""
        hands = HeldMessages(stage, mode, endpoint_pool_max_size=1)
        stage.send(*"ab")
        held = [hands.take() for _ in range(2)]
        assert stage.heard.settled_messages == 0
        with ThreadPoolExecutor() as other:
            settlements = [other.submit(message.acknowledge).result() for message in held]
        assert {settlement.wait(PATIENCE) for settlement in settlements} == {Outcome.COMMITTED}
        stage.adapter.stop()
        stage.expect_remaining(stage.source)

    def test_acknowledged_before_the_handler_returns(self, stage: ListenerHarness, mode: str) -> None:
        """The unit waits for the return."""
        outcomes: list[object] = []

        def _handler(message: Message) -> None:
            outcomes.append(message.acknowledge().outcome)

        stage.send("a")
        stage.listen(_handler, concurrency_mode=mode, hold_until_ack=True)
        stage.heard.await_outcome(Outcome.COMMITTED)
        assert outcomes == [None]

    def test_acknowledged_in_a_coroutine(self, stage: ListenerHarness, mode: str) -> None:
        """The settlement can be awaited."""

        async def _work() -> Outcome:
            return await message.acknowledge()

        hands = HeldMessages(stage, mode)
        stage.send("a")
        message = hands.take()
        assert asyncio.run(_work()) is Outcome.COMMITTED

    def test_acknowledging_twice_is_as_once(self, stage: ListenerHarness, mode: str) -> None:
        """A repeated acknowledgement does not count for another message of the unit, even after the settlement."""
        hands = HeldMessages(stage, mode, batch_size=2, endpoint_pool_max_size=1)
        stage.send(*"abcd")
        batch, later = hands.take_batch(), hands.take_batch()
        *_, last = [message.acknowledge() for message in (*batch[:1] * 5, *later)]
        assert last.wait(PATIENCE) is Outcome.COMMITTED
        assert batch[0].acknowledge().outcome is None
        *_, last = [message.acknowledge() for message in batch]
        assert last.wait(PATIENCE) is Outcome.COMMITTED
        assert batch[0].acknowledge().outcome is Outcome.COMMITTED

    def test_rolling_back_is_for_before(self, stage: ListenerHarness, mode: str) -> None:
        """After the acknowledgement it is refused."""
        hands = HeldMessages(stage, mode)
        stage.send("a")
        message = hands.take()
        message.set_boolean_property("JMSJCA.setRollbackOnly", True)
        assert message.acknowledge().wait(PATIENCE) is Outcome.ROLLED_BACK
        again = hands.take()
        settlement = again.acknowledge()
        with pytest.raises(IllegalStateError, match="acknowledged already"):
            again.set_boolean_property("JMSJCA.setRollbackOnly", True)
        assert settlement.wait(PATIENCE) is Outcome.COMMITTED

    def test_an_exception_rolls_back_and_needs_no_acknowledgement(self, stage: ListenerHarness, mode: str) -> None:
        """As if the handler had rolled back and acknowledged."""
        failures = [HandlerFailed()]

        def _handler(message: Message) -> None:
            if failures:
                raise failures.pop()
            message.acknowledge()

        stage.send("a")
        stage.listen(_handler, concurrency_mode=mode, hold_until_ack=True)
        stage.heard.await_retry(mode)

    def test_a_handler_that_cannot_pass_its_message_on_rolls_back(self, stage: ListenerHarness, mode: str) -> None:
        """The handler marks the unit for rollback and acknowledges by itself; the next attempt succeeds."""
        with ThreadPoolExecutor() as closed:
            pass  # a pool that is shut down refuses work
        seen: list[bool] = []

        def _handler(message: Message) -> None:
            seen.append(message.redelivered)
            try:
                next(pools).submit(message.acknowledge)
            except RuntimeError:
                message.set_rollback_only()
                message.acknowledge()

        stage.send("a")
        with ThreadPoolExecutor() as working:
            pools = iter((closed, working))
            stage.listen(_handler, concurrency_mode=mode, hold_until_ack=True)
            stage.heard.await_retry(mode)
        assert seen == [False, True]

    @pytest.mark.parametrize("missing", [0, -1])
    def test_a_batch_waits_for_each_acknowledgement(self, stage: ListenerHarness, mode: str, missing: int) -> None:
        """It waits for each message and for the end. A later batch may be settled before it."""
        hands = HeldMessages(stage, mode, batch_size=2, endpoint_pool_max_size=1)
        stage.send(*"abcd")
        batch, later = hands.take_batch(), hands.take_batch()
        last = batch.pop(missing)
        *_, settlement = [message.acknowledge() for message in (*batch, *later)]
        assert settlement.wait(PATIENCE) is Outcome.COMMITTED
        assert batch[0].acknowledge().outcome is None
        assert last.acknowledge().wait(PATIENCE) is Outcome.COMMITTED

    @pytest.mark.parametrize("rolled_back", [0, -1, None])
    def test_a_batch_is_settled_with_its_last_acknowledgement(
        self, stage: ListenerHarness, mode: str, rolled_back: int | None
    ) -> None:
        """That of each message and of the end, in any order; any of them can roll it back."""
        hands = HeldMessages(stage, mode, batch_size=2, endpoint_pool_max_size=1)
        stage.send(*"ab")
        messages = hands.take_batch()
        if rolled_back is not None:
            messages[rolled_back].set_rollback_only()
        settlements = [message.acknowledge() for message in reversed(messages)]
        expected = Outcome.COMMITTED if rolled_back is None else Outcome.ROLLED_BACK
        assert {settlement.wait(PATIENCE) for settlement in settlements} == {expected}

    def test_rolling_back_ends_the_batch(self, stage: ListenerHarness, mode: str) -> None:
        """As soon as possible: the handler sees the end next."""
        seen: queue.Queue[object] = queue.Queue()

        def _handler(message: Message) -> None:
            if seen.empty():
                message.set_rollback_only()
            seen.put(message.body)
            message.acknowledge()

        stage.send(*"abc")
        stage.listen(_handler, concurrency_mode=mode, hold_until_ack=True, batch_size=3, endpoint_pool_max_size=1)
        assert [seen.get(timeout=PATIENCE) for _ in range(2)] == ["a", None]

    def test_more_are_outstanding_than_there_are_threads(self, stage: ListenerHarness, mode: str) -> None:
        """A handler that has returned holds no thread; never more than `max_outstanding` units are open."""
        hands = HeldMessages(stage, mode, endpoint_pool_max_size=2, max_outstanding=20)
        stage.send(*(f"{number:02}" for number in range(30)))
        held = [hands.take() for _ in range(20)]
        assert len(hands) == stage.heard.settled_messages == 0
        for message in held[:10]:
            message.acknowledge()
        held = held[10:] + [hands.take() for _ in range(10)]
        assert {message.acknowledge().wait(PATIENCE) for message in held} == {Outcome.COMMITTED}

    def test_switched_on_in_the_manuals_words(self, stage: ListenerHarness, mode: str) -> None:
        """HoldUntilAck=1: what is not acknowledged is there again after a stop."""
        words = {
            "concurrencyMode": mode,
            "destination": stage.source.name,
            "destinationType": "javax.jms.Queue",
            "HoldUntilAck": "1",
        }
        held: queue.Queue[Message] = queue.Queue()
        stage.adapter.activate(ActivationSpec.from_properties(words), held.put).start()
        stage.send(*"ab")
        messages = {message.body: message for message in (held.get(timeout=PATIENCE) for _ in range(2))}
        assert messages["a"].acknowledge().wait(PATIENCE) is Outcome.COMMITTED
        stage.adapter.stop()
        stage.expect_remaining(stage.source, "b")


class AcknowledgingHandler:
    """Forwards each message in its unit, and acknowledges: one in ten on another thread.

    Args:
        stage: Where it plays.
        rollbacks: How often a message rolls its unit back; what is sent then never arrives.
    """

    def __init__(self, stage: ListenerHarness, rollbacks: float = 0.0) -> None:
        self._stage = stage
        self._rolls_back = SeededChance(rollbacks)
        self._goes_elsewhere = SeededChance(0.1)
        self._others = ThreadPoolExecutor()

    def __call__(self, message: Message, session: Session) -> None:
        """Do the work for a message, or for the end of a batch."""
        self.work(message, session)
        self.acknowledge(message)

    def work(self, message: Message, session: Session) -> None:
        """Forward a message, and roll it back now and then."""
        forward(message, session, self._stage.ends if message.end_of_batch else self._stage.out)
        if self._rolls_back(message.body):
            message.set_boolean_property("JMSJCA.setRollbackOnly", True)
            forward(message, session, self._stage.never)

    def acknowledge(self, message: Message) -> None:
        """Acknowledge a message here or elsewhere."""
        if self._goes_elsewhere(message.body):
            self._others.submit(message.acknowledge)
        else:
            message.acknowledge()


class OwnTransactionHandler(AcknowledgingHandler):
    """Forwards in a separate transaction, and rolls it back together with the receipt."""

    def __call__(self, message: Message) -> None:  # type: ignore[override]  # jmsjca looks which parameters there are
        """Do the work for a message, or for the end of a batch."""
        with self._stage.connection.create_session(transacted=True) as session:
            self.work(message, session)
            if message.rollback_only:
                session.rollback()
            else:
                session.commit()
        self.acknowledge(message)


class HeldMessages:
    """A handler that puts messages where the case takes them; and the listener with held acknowledgement."""

    def __init__(self, stage: ListenerHarness, mode: str, **spec: Any) -> None:
        self._held: queue.Queue[Message] = queue.Queue()
        self.activation = stage.listen(self._held.put, concurrency_mode=mode, hold_until_ack=True, **spec)

    def take(self) -> Message:
        """Wait for the next message."""
        return self._held.get(timeout=PATIENCE)

    def take_batch(self) -> list[Message]:
        """Wait for the messages of a batch, its end among them."""
        messages = [self.take()]
        while not messages[-1].end_of_batch:
            messages.append(self.take())
        return messages

    def settle(self, message: Message, action: str) -> Settlement:
        """Settle a message by the id of its delivery."""
        assert message.delivery_id
        return self.activation.settle(message.delivery_id, action)

    def __len__(self) -> int:
        return self._held.qsize()


@pytest.mark.parametrize("mode", ["sync", "cc"])
class TestTimeouts(ListenerContract):
    """No acknowledgement arrives (the Jitterbit connector's acknowledgement timeout)."""

    def test_the_listener_limits_the_wait(self, stage: ListenerHarness, mode: str) -> None:
        """The message is redelivered; a later acknowledgement of the first delivery reports this."""
        hands = HeldMessages(stage, mode, acknowledgement_timeout=0.05)
        stage.send("a")
        late = hands.take()
        again = hands.take()
        assert again.redelivered
        assert late.acknowledge().wait(PATIENCE) is Outcome.ROLLED_BACK

    def test_a_message_limits_its_own_wait(self, stage: ListenerHarness, mode: str) -> None:
        """By the property JBXAcknowledgmentTimeout, in seconds; others wait."""
        hands = HeldMessages(stage, mode, endpoint_pool_max_size=1)
        message = stage.connection.create_session().create_text_message("impatient")
        message.set_double_property("JBXAcknowledgmentTimeout", 0.05)
        stage.send("patient")
        stage.harness.send_messages(stage.source, message)
        patient = hands.take()
        assert [hands.take().body for _ in range(3)] == ["impatient"] * 3
        assert patient.acknowledge().wait(PATIENCE) is Outcome.COMMITTED


class TestSettling(ListenerContract):
    """`Activation.settle` (the acknowledge activity of the Jitterbit connector)."""

    @pytest.mark.parametrize("action", ["JBXCommit", "jbxcommit"])
    def test_commits(self, stage: ListenerHarness, action: str) -> None:
        """In upper or lower case."""
        hands = HeldMessages(stage, "sync")
        stage.send("a")
        assert hands.settle(hands.take(), action).wait(PATIENCE) is Outcome.COMMITTED

    def test_commits_by_the_id_of_the_message(self, stage: ListenerHarness) -> None:
        """While there is no other delivery of the message."""
        hands = HeldMessages(stage, "sync")
        stage.send("a")
        message = hands.take()
        assert hands.activation.settle(str(message.message_id), "JBXCommit").wait(PATIENCE) is Outcome.COMMITTED

    @pytest.mark.parametrize("mode", ["sync", "cc"])
    def test_a_late_settlement_settles_no_other_delivery(self, stage: ListenerHarness, mode: str) -> None:
        """Neither the id of the message nor the id of the ended delivery settles the new delivery."""
        hands = HeldMessages(stage, mode, endpoint_pool_max_size=1)
        stage.send("a")
        late = hands.take()
        late.set_rollback_only()
        assert late.acknowledge().wait(PATIENCE) is Outcome.ROLLED_BACK
        again = hands.take()
        assert (again.message_id, again.redelivered) == (late.message_id, True)
        for action in ("JBXCommit", "JBXRollback"):
            with pytest.raises(IllegalStateError, match="delivery_id"):
                hands.activation.settle(str(late.message_id), action)
            with pytest.raises(IllegalStateError, match="already: rolled back"):
                hands.settle(late, action)
        assert late.delivery_id != again.delivery_id
        assert hands.settle(again, "JBXCommit").wait(PATIENCE) is Outcome.COMMITTED
        with pytest.raises(IllegalStateError, match="already: committed"):
            hands.activation.settle(str(late.message_id), "JBXCommit")

    def test_rolls_back(self, stage: ListenerHarness) -> None:
        """The message is redelivered, and can be settled again."""
        hands = HeldMessages(stage, "sync")
        stage.send("a")
        assert hands.settle(hands.take(), "JBXRollback").wait(PATIENCE) is Outcome.ROLLED_BACK
        again = hands.take()
        assert again.redelivered
        assert hands.settle(again, "JBXCommit").wait(PATIENCE) is Outcome.COMMITTED

    @pytest.mark.parametrize(("action", "outcome"), [("JBXCommit", "COMMITTED"), ("JBXRollback", "ROLLED_BACK")])
    def test_settles_a_batch_with_the_id_of_its_end(self, stage: ListenerHarness, action: str, outcome: str) -> None:
        """The end of a batch has an id, so that a program that has only ids can settle the whole batch."""
        hands = HeldMessages(stage, "sync", batch_size=2, endpoint_pool_max_size=1)
        stage.send("a")
        *messages, end = hands.take_batch()
        settlements = [hands.settle(message, "JBXCommit") for message in messages]
        assert settlements[0].outcome is None
        assert hands.settle(end, action).wait(PATIENCE) is Outcome[outcome]

    def test_refuses_what_it_does_not_know(self, stage: ListenerHarness) -> None:
        """Another action, an unknown id, and one that is settled."""
        hands = HeldMessages(stage, "sync")
        stage.send("a")
        message = hands.take()
        with pytest.raises(ConfigurationError, match="JBXRollback"):
            hands.settle(message, "commit")
        with pytest.raises(IllegalStateError, match="No message"):
            hands.activation.settle("ID:unknown", "JBXCommit")
        message.acknowledge().wait(PATIENCE)
        with pytest.raises(IllegalStateError, match="already"):
            hands.settle(message, "JBXCommit")
