"""Cases for sessions and units: commit, rollback, pipelined sends, and message listeners."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import pytest

from jmsjca.config import AcknowledgeMode, Limits
from jmsjca.destinations import Destination
from jmsjca.errors import IllegalStateError, JMSError, NotSupportedError, ResourceAllocationError
from jmsjca.messages import Message, TextMessage
from jmsjca.outbound import Connection, ConnectionFactory, Session
from jmsjca.spi import Order, Unit
from jmsjca.testing.contract.harness import PATIENCE, Contract, Harness, bodies, prepare

__all__ = [
    "TestAsynchronousSends",
    "TestCommit",
    "TestMessageListeners",
    "TestPipelinedSends",
    "TestRollback",
    "TestUnitStates",
    "TestUnitsOfOneReceive",
]


class TestPipelinedSends(Contract):
    """`Unit.start_commit`: many units in flight, in order, each with a separate outcome."""

    def test_started_commits_take_effect_in_order(self, harness: Harness) -> None:
        """No unit waits for the previous one, and no unit overtakes it (JMS 3.1, section 7.3.3)."""
        queue, sent = harness.queue(), [str(number) for number in range(200)]
        waits = [_start(harness, queue, body) for body in sent]
        for wait in waits:
            wait()
        harness.expect(queue, *sent)

    def test_later_commit_does_not_overtake_them(self, harness: Harness) -> None:
        """The messages of a later commit, in a transaction if the broker has them, come after the pipelined ones."""
        queue = harness.queue()
        waits = [_start(harness, queue, body) for body in "abcdefgh"]
        harness.send(queue, "i")
        for wait in waits:
            wait()
        harness.expect(queue, *"abcdefghi")

    def test_each_destination_gets_its_messages(self, harness: Harness) -> None:
        """Pipelining does not mix up state that a provider keeps per destination."""
        queues, topic = [harness.queue() for _ in range(3)], harness.topic()
        subscriber = harness.connect().consumer(topic)
        waits = [_start(harness, to, body) for body in "abc" for to in (*queues, topic)]
        for wait in waits:
            wait()
        for queue in queues:
            harness.expect(queue, *"abc")
        assert bodies(harness.gather(subscriber, 3)) == list("abc")

    def test_messages_are_written_although_nobody_waits(self, harness: Harness) -> None:
        """A message is sent even if the caller does not wait for the outcome."""
        queue = harness.queue()
        consumer = harness.connect().consumer(queue)
        wait = _start(harness, queue, "a")
        assert bodies(harness.gather(consumer, 1)) == ["a"]
        wait()

    def test_unit_with_deliveries_is_refused(self, harness: Harness) -> None:
        """The unit acknowledges deliveries, so it stays open for `commit`."""
        queue = harness.queue()
        harness.send(queue, "a")
        consumer = harness.connection.consumer(queue)
        unit = harness.holding(harness.gather(consumer, 1))
        with pytest.raises(IllegalStateError):
            unit.start_commit()
        unit.commit()
        consumer.close()
        harness.expect(queue)


def _start(harness: Harness, to: Destination, body: str) -> Callable[[], None]:
    unit = harness.connection.unit(atomic=False)
    harness.record(unit, to, body)
    return unit.start_commit()


class _Sessions(Contract):
    @pytest.fixture
    def connection(self, harness: Harness) -> Iterator[Connection]:
        """Provide a started connection of the public API."""
        with ConnectionFactory(harness.url).create_connection() as connection:
            yield connection


class TestAsynchronousSends(_Sessions):
    """Asynchronous sends of sessions (JMS 3.1, section 7.3)."""

    def test_they_complete_in_order(self, harness: Harness, connection: Connection) -> None:
        """One listener call after the other, with synchronous sends among them."""
        queue, told = harness.queue(), list[tuple[str, JMSError | None]]()
        sent = [str(number) for number in range(100)]
        with connection.create_session() as session:
            producer = session.create_producer(queue)
            for number, body in enumerate(sent):
                if number % 10:
                    producer.send(
                        TextMessage(body), on_completion=lambda message, error: told.append((message.body, error))
                    )
                else:
                    producer.send(TextMessage(body))
        assert told == [(body, None) for number, body in enumerate(sent) if number % 10]
        harness.expect(queue, *sent)

    def test_future_is_done_when_the_broker_has_the_message(self, harness: Harness, connection: Connection) -> None:
        """With the message and its headers (section 7.3.6)."""
        queue = harness.queue()
        with connection.create_session() as session:
            message = TextMessage("a")
            assert session.create_producer(queue).send_async(message).result(PATIENCE) is message
            assert message.message_id
            harness.expect(queue, "a")

    def test_transaction_ends_after_them(self, harness: Harness, connection: Connection) -> None:
        """Commit and rollback wait for the listeners (section 7.3.4), and decide what is sent."""
        harness.require("atomic")
        queue, told = harness.queue(), list[object]()
        with connection.create_session(transacted=True) as session:
            producer = session.create_producer(queue)
            for body, end in (("a", session.commit), ("b", session.rollback), ("c", session.commit)):
                producer.send(TextMessage(body), on_completion=lambda message, _: told.append(message.body))
                end()
                assert told[-1] == body
        harness.expect(queue, "a", "c")


class TestMessageListeners(_Sessions):
    """Message listeners of the consumers of a session (JMS 3.1, section 8.7)."""

    def test_all_messages_are_delivered_in_order(self, harness: Harness, connection: Connection) -> None:
        """And acknowledged: none is left."""
        queue, sent = harness.queue(), [str(number) for number in range(100)]
        received = SimpleQueue[Message]()
        session = connection.create_session()
        session.create_consumer(queue).set_message_listener(received.put)
        harness.send(queue, *sent)
        assert [received.get(timeout=PATIENCE).body for _ in sent] == sent
        session.close()
        harness.expect(queue)

    def test_one_thread_calls_the_listeners_of_a_session(self, harness: Harness, connection: Connection) -> None:
        """A session with many consumers has one thread (section 6.2.13)."""
        queues, threads, received = [harness.queue() for _ in range(3)], set[int](), SimpleQueue[Message]()

        def listen(message: Message) -> None:
            """Record the thread and the message."""
            threads.add(threading.get_ident())
            received.put(message)

        connection.stop()
        session = connection.create_session()
        for queue in queues:
            session.create_consumer(queue).set_message_listener(listen)
            harness.send(queue, *"ab")
        connection.start()
        assert sorted(received.get(timeout=PATIENCE).body for _ in range(6)) == list("aaabbb")
        assert len(threads) == 1

    @pytest.mark.parametrize("mode", [AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK])
    def test_failed_message_is_redelivered(
        self, harness: Harness, connection: Connection, mode: AcknowledgeMode
    ) -> None:
        """At once, before all others, and marked (section 8.7)."""
        queue, seen, done = harness.queue(), list[tuple[str, bool]](), threading.Event()

        def fail_once(message: Message) -> None:
            """Fail at the first delivery of one message."""
            seen.append((message.body, message.redelivered))
            if message.body == "b" and not message.redelivered:
                raise JMSError("The first delivery fails.")
            if message.body == "c":
                done.set()

        harness.send(queue, *"abc")
        session = connection.create_session(acknowledge_mode=mode)
        session.create_consumer(queue).set_message_listener(fail_once)
        assert done.wait(PATIENCE)
        session.close()
        assert [body for body, _ in seen] == ["a", "b", "b", "c"]
        assert seen[2] == ("b", True)
        harness.expect(queue)

    def test_client_acknowledges_and_recovers(self, harness: Harness, connection: Connection) -> None:
        """The session is the listener's (section 6.2.5)."""
        queue, seen, done = harness.queue(), list[str](), threading.Event()
        session = connection.create_session(acknowledge_mode=AcknowledgeMode.CLIENT)

        def recover_once(message: Message) -> None:
            """Recover at the first delivery, acknowledge at the second."""
            seen.append(message.body)
            if message.redelivered:
                message.acknowledge()
                done.set()
            else:
                session.recover()

        harness.send(queue, "a")
        session.create_consumer(queue).set_message_listener(recover_once)
        assert done.wait(PATIENCE)
        session.close()
        assert seen == ["a", "a"]
        harness.expect(queue)

    def test_listener_commits_what_it_receives_and_sends(self, harness: Harness, connection: Connection) -> None:
        """In one transaction of the session (section 6.2.7)."""
        harness.require("atomic")
        queue, replies = harness.queue(), harness.queue()
        session, done = connection.create_session(transacted=True), threading.Event()

        def reply(message: Message) -> None:
            """Roll back at the first delivery, commit at the second."""
            _reply(session, replies, message)
            if not message.redelivered:
                session.rollback()
                return
            session.commit()
            done.set()

        harness.send(queue, "a")
        session.create_consumer(queue).set_message_listener(reply)
        assert done.wait(PATIENCE)
        session.close()
        harness.expect(queue)
        harness.expect(replies, "A")

    def test_stop_pauses_the_delivery(self, harness: Harness, connection: Connection) -> None:
        """After `stop` no listener is called until the next `start` (section 6.1.5)."""
        queue, received = harness.queue(), SimpleQueue[Message]()
        connection.create_session().create_consumer(queue).set_message_listener(received.put)
        harness.send(queue, "a")
        assert received.get(timeout=PATIENCE).body == "a"
        connection.stop()
        harness.send(queue, "b")
        assert received.empty()
        connection.start()
        assert received.get(timeout=PATIENCE).body == "b"

    def test_closed_consumer_gives_back_what_its_listener_has_not_seen(
        self, harness: Harness, connection: Connection
    ) -> None:
        """The listener's own message is acknowledged when it returns (section 8.8)."""
        queue, done = harness.queue(), threading.Event()
        harness.send(queue, *"abc")
        session = connection.create_session()
        consumer = session.create_consumer(queue)

        def close(_: Message) -> None:
            """Close the consumer that delivers the message."""
            consumer.close()
            done.set()

        consumer.set_message_listener(close)
        assert done.wait(PATIENCE)
        session.close()
        harness.expect(queue, "b", "c")


def _reply(session: Session, to: Destination, message: Message) -> None:
    session.create_producer(to).send(TextMessage(message.body.upper()))


class TestCommit(Contract):
    """Commit (JMS 3.1, section 6.2.7)."""

    def test_commit_acknowledges(self, harness: Harness) -> None:
        """Deliveries of a committed unit are never redelivered."""
        queue = harness.queue()
        harness.send(queue, *"ab")
        harness.settle(harness.gather(harness.connection.consumer(queue), 2))
        harness.connection.close()
        harness.expect(queue)

    def test_commit_settles_what_its_unit_took_and_no_more(self, harness: Harness) -> None:
        """Other deliveries of the consumer are redelivered after its close."""
        harness.require_any_unit()
        queue = harness.queue()
        harness.send(queue, *"abc")
        first, *_ = harness.gather(harness.connection.consumer(queue), 3)
        harness.settle([first])
        harness.connection.close()
        harness.expect(queue, "b", "c")

    def test_commit_after_commit(self, harness: Harness) -> None:
        """One unit after the other, of one consumer and with many messages each."""
        queue, sent = harness.queue(), [str(n) for n in range(60)]
        harness.send(queue, *sent)
        consumer = harness.connection.consumer(queue)
        for begin in range(0, 45, 15):
            chunk = harness.gather(consumer, 15)
            assert bodies(chunk) == sent[begin : begin + 15]
            harness.settle(chunk)
        harness.connection.close()
        harness.expect(queue, *sent[45:])

    def test_sends_are_invisible_before_commit(self, harness: Harness) -> None:
        """A message is produced by the commit, not by the send."""
        queue = harness.queue()
        unit = harness.unit()
        harness.record(unit, queue, "a")
        consumer = harness.connect().consumer(queue)
        assert harness.receives_nothing(consumer, queue)
        unit.commit()
        assert bodies(harness.gather(consumer, 1)) == ["a"]

    def test_commit_settles_and_sends_together(self, harness: Harness) -> None:
        """One unit moves a message from one queue to another (capability atomic)."""
        harness.require("atomic")
        source, target = harness.queue(), harness.queue()
        harness.send(source, "a")
        unit = harness.holding(harness.gather(harness.connection.consumer(source), 1))
        harness.record(unit, target, "moved")
        unit.commit()
        harness.connection.close()
        harness.expect(source)
        harness.expect(target, "moved")

    def test_unit_that_need_not_be_atomic_does_both(self, harness: Harness) -> None:
        """With ``atomic=False`` the commit sends first and acknowledges then; both have happened after it."""
        source, target = harness.queue(), harness.queue()
        harness.send(source, "a")
        unit = harness.connection.unit(atomic=False)
        unit.take(harness.gather(harness.connection.consumer(source), 1))
        harness.record(unit, target, "moved")
        unit.commit()
        harness.connection.close()
        harness.expect(source)
        harness.expect(target, "moved")

    def test_message_over_the_limit_is_refused_at_once(self, harness: Harness) -> None:
        """`ResourceAllocationError` at the send. The unit stays usable: it can move smaller messages."""
        source, target = harness.queue(), harness.queue()
        harness.send(source, "a")
        connection = harness.connect(limits=Limits(message_bytes=10_000))
        unit = harness.holding(harness.gather(connection.consumer(source), 1), connection)
        with pytest.raises(ResourceAllocationError):
            harness.record(unit, target, "x" * 10_001)
        harness.record(unit, target, "small")
        unit.commit()
        connection.close()
        harness.expect(source)
        harness.expect(target, "small")

    def test_empty_unit_commits(self, harness: Harness) -> None:
        """Nothing taken, nothing sent, nothing wrong."""
        harness.unit().commit()

    def test_message_changed_after_send_is_sent_as_it_was(self, harness: Harness) -> None:
        """A message may be reused as soon as it was handed over (JMS 3.1, section 3.9)."""
        queue = harness.queue()
        message = TextMessage("before", properties={"when": "before"})
        unit = harness.unit()
        unit.send(prepare(message, queue), queue)
        message.body, message.properties["when"] = "after", "after"
        unit.commit()
        [delivery] = harness.gather(harness.connection.consumer(queue), 1)
        assert (delivery.message.body, delivery.message.properties["when"]) == ("before", "before")

    @pytest.mark.parametrize("first", ["one", "two"])
    @pytest.mark.parametrize(
        ("one_ends", "two_ends", "left"),
        [("commit", "rollback", "bdf"), ("rollback", "commit", "ace"), ("commit", "commit", "")],
    )
    def test_two_units_settle_crosswise(
        self, harness: Harness, first: str, one_ends: str, two_ends: str, left: str
    ) -> None:
        """Units of one connection are independent, whichever ends first and however their messages mingle."""
        harness.require_any_unit()
        queue = harness.queue()
        harness.send(queue, *"abcdef")
        deliveries = harness.gather(harness.connection.consumer(queue, order=Order.ANY), 6)
        one, two = harness.holding(deliveries[::2]), harness.holding(deliveries[1::2])
        ends: dict[str, Callable[[], None]] = {"one": getattr(one, one_ends), "two": getattr(two, two_ends)}
        ends.pop(first)()
        ends.popitem()[1]()
        harness.connection.close()
        harness.expect(queue, *left, ordered=False)

    @pytest.mark.parametrize("first", [0, 1])
    def test_two_units_send_independently(self, harness: Harness, first: int) -> None:
        """A commit neither sends nor loses the messages of another unit."""
        queue = harness.queue()
        units = [harness.unit(), harness.unit()]
        for number in (0, 1, 0, 1):
            harness.record(units[number], queue, f"of {number}")
        units[first].commit()
        units[1 - first].rollback()
        harness.expect(queue, *[f"of {first}"] * 2)


class TestUnitsOfOneReceive(Contract):
    """Where a unit takes all deliveries of one `Consumer.receive` (capability units), any other unit is refused."""

    @pytest.fixture(autouse=True)
    def _units(self, harness: Harness, _capabilities: None) -> None:
        if harness.connection.capabilities.units != "receive":
            pytest.skip("The broker's capability units is 'any', not 'receive'.")

    def test_deliveries_of_one_receive_commit_together(self, harness: Harness) -> None:
        """With ``together`` they are one unit; the next receive belongs to another one, which ends on its own."""
        queue, target = harness.queue(), harness.queue()
        harness.send(queue, *"abcdef")
        consumer = harness.connection.consumer(queue, order=Order.ANY, together=3)
        first, second = consumer.receive(10, PATIENCE), consumer.receive(10, PATIENCE)
        assert len(first) == 3
        one, two = harness.holding(first), harness.holding(second)
        harness.record(one, target, "moved")
        two.rollback()
        one.commit()
        harness.connection.close()
        harness.expect(queue, *"def", ordered=False)
        harness.expect(target, "moved")

    @pytest.mark.parametrize("order", [Order.PREFIX, Order.ANY])
    def test_part_is_refused(self, harness: Harness, order: Order) -> None:
        """Nothing of the unit is committed: neither its deliveries nor its sends; all are redelivered."""
        queue, target = harness.queue(), harness.queue()
        harness.send(queue, *"abc")
        consumer = harness.connection.consumer(queue, order=order, together=3)
        chunk = harness.gather(consumer, 3)
        unit = harness.holding(chunk[:2])
        harness.record(unit, target, "never")
        with pytest.raises(NotSupportedError, match="redelivered"):
            unit.commit()
        harness.connection.close()
        harness.expect(queue, *"abc", ordered=False)
        harness.expect(target)

    def test_deliveries_of_two_receives_are_refused(self, harness: Harness) -> None:
        """Two JMS sessions cannot commit together, so neither does."""
        queue, target = harness.queue(), harness.queue()
        harness.send(queue, *"ab")
        unit = harness.holding(harness.gather(harness.connection.consumer(queue, order=Order.ANY), 2))
        harness.record(unit, target, "never")
        with pytest.raises(NotSupportedError, match="redelivered"):
            unit.commit()
        harness.connection.close()
        harness.expect(queue, *"ab", ordered=False)
        harness.expect(target)

    def test_redelivered_message_comes_alone(self, harness: Harness) -> None:
        """It may be delayed, moved or deleted, and then the others of a batch must not wait for it."""
        queue = harness.queue()
        harness.send(queue, *"ab")
        consumer = harness.connection.consumer(queue, order=Order.ANY, together=2)
        harness.holding(harness.gather(consumer, 2)).rollback()
        again = [consumer.receive(2, PATIENCE), consumer.receive(2, PATIENCE)]
        assert [len(chunk) for chunk in again] == [1, 1]
        for chunk in again:
            harness.settle(chunk)
        harness.connection.close()
        harness.expect(queue)

    def test_consumer_prefetches_no_more_than_ends_together(self, harness: Harness) -> None:
        """By default one message: others would be in its transaction."""
        queue = harness.queue()
        harness.send(queue, *"ab")
        assert len(harness.connection.consumer(queue).receive(10, PATIENCE)) == 1


class TestUnitStates(Contract):
    """Misuse is refused (`IllegalStateError`), never guessed at."""

    def test_delivery_belongs_to_one_unit(self, harness: Harness) -> None:
        """A second take of a delivery is an error, in the same unit and in another."""
        queue = harness.queue()
        harness.send(queue, "a")
        deliveries = harness.gather(harness.connection.consumer(queue), 1)
        unit, other = harness.holding(deliveries), harness.unit()
        for again in (unit, other):
            with pytest.raises(IllegalStateError):
                again.take(deliveries)

    def test_delivery_given_back_cannot_be_taken(self, harness: Harness) -> None:
        """A released delivery may already belong to another consumer."""
        queue = harness.queue()
        harness.send(queue, "a")
        consumer = harness.connection.consumer(queue)
        deliveries = harness.gather(consumer, 1)
        consumer.release(deliveries)
        with pytest.raises(IllegalStateError):
            harness.unit().take(deliveries)

    def test_settled_delivery_cannot_be_taken(self, harness: Harness) -> None:
        """A delivery is settled once, whether by commit or by rollback."""
        queue = harness.queue()
        harness.send(queue, *"ab")
        first, second = harness.gather(harness.connection.consumer(queue, order=Order.ANY), 2)
        harness.settle([first])
        harness.holding([second]).rollback()
        for settled in (first, second):
            with pytest.raises(IllegalStateError):
                harness.unit().take([settled])

    @pytest.mark.parametrize("end", ["commit", "rollback"])
    def test_finished_unit_refuses_everything(self, harness: Harness, end: str) -> None:
        """A unit is used once."""
        queue = harness.queue()
        unit: Unit = harness.unit()
        getattr(unit, end)()
        calls: list[Callable[[], None]] = [
            unit.commit,
            unit.rollback,
            lambda: unit.take([]),
            lambda: harness.record(unit, queue, "a"),
        ]
        for call in calls:
            with pytest.raises(IllegalStateError):
                call()


class TestRollback(Contract):
    """Rollback (JMS 3.1, section 6.2.7), and what it counts."""

    def test_rollback_discards_sends(self, harness: Harness) -> None:
        """The sends of a rolled-back unit are discarded."""
        queue = harness.queue()
        unit = harness.unit()
        harness.record(unit, queue, "a")
        unit.rollback()
        harness.expect(queue)

    def test_rollback_neither_settles_nor_sends(self, harness: Harness) -> None:
        """After a rollback everything is as before."""
        source, target = harness.queue(), harness.queue()
        harness.send(source, "a")
        unit = harness.holding(harness.gather(harness.connection.consumer(source), 1))
        harness.record(unit, target, "moved")
        unit.rollback()
        harness.connection.close()
        harness.expect(source, "a")
        harness.expect(target)

    def test_rollback_marks_redelivered(self, harness: Harness) -> None:
        """JMSRedelivered is set when a message is redelivered (JMS 3.1, section 3.4.7)."""
        queue = harness.queue()
        harness.send(queue, *"ab")
        consumer = harness.connection.consumer(queue, order=Order.ANY)
        first, second = harness.gather(consumer, 2)
        harness.holding([first]).rollback()
        [again] = harness.gather(consumer, 1)
        assert (first.redelivered, second.redelivered, again.redelivered) == (False, False, True)
        assert (first.message.redelivered, again.message.redelivered) == (False, True)

    @pytest.mark.parametrize("body", ["a", "a" * 200_000], ids=["small", "large"])
    def test_rollback_counts(self, harness: Harness, body: str) -> None:
        """JMSXDeliveryCount grows and JMSRedelivered is set (JMS 3.1, sections 3.4.7 and 3.5.11)."""
        harness.require("delivery_count")
        queue = harness.queue()
        harness.send_messages(queue, TextMessage(body))
        consumer = harness.connection.consumer(queue)
        for expected in (1, 2, 3):
            [delivery] = harness.gather(consumer, 1)
            assert (delivery.count, delivery.redelivered) == (expected, expected > 1)
            assert (delivery.message.delivery_count, delivery.message.redelivered) == (expected, expected > 1)
            harness.holding([delivery]).rollback()

    def test_count_goes_on_at_another_consumer(self, harness: Harness) -> None:
        """The broker counts, so the next consumer sees the count (capability delivery_count)."""
        harness.require("delivery_count")
        queue = harness.queue()
        harness.send(queue, "a")
        for expected in (1, 2, 3):
            connection = harness.connect()
            [delivery] = harness.gather(connection.consumer(queue), 1)
            assert (delivery.count, delivery.redelivered) == (expected, expected > 1)
            harness.holding([delivery], connection).rollback()
            connection.close()

    def test_unused_deliveries_of_a_rollback_are_not_counted(self, harness: Harness) -> None:
        """A batch rolls back; what the handler had not looked at is as good as new (design rule of `rollback`)."""
        harness.require("delivery_count")
        harness.require_release("uncounted")
        queue = harness.queue()
        harness.send(queue, *"ab")
        consumer = harness.connection.consumer(queue)
        first, second = harness.gather(consumer, 2)
        harness.holding([first, second]).rollback(unused=[second])
        assert [(d.message.body, d.count) for d in harness.gather(consumer, 2)] == [("a", 2), ("b", 1)]

    def test_rollback_reaches_every_consumer(self, harness: Harness) -> None:
        """One unit may take deliveries of several consumers; all are redelivered."""
        queues = [harness.queue(), harness.queue()]
        unit = harness.unit()
        for queue in queues:
            harness.send(queue, "a")
            unit.take(harness.gather(harness.connection.consumer(queue), 1))
        unit.rollback()
        harness.connection.close()
        for queue in queues:
            harness.expect(queue, "a")

    def test_empty_unit_rolls_back(self, harness: Harness) -> None:
        """Nothing taken, nothing sent, nothing wrong."""
        harness.unit().rollback()

    def test_rollback_with_delay_holds_the_message(self, harness: Harness) -> None:
        """The broker holds a rolled-back message back until its delay is over (capability redelivery_delay)."""
        harness.require("redelivery_delay")
        queue = harness.queue()
        harness.send(queue, *"ab")
        consumer = harness.connection.consumer(queue, window=0)
        harness.holding(harness.gather(consumer, 1)).rollback(delay=3600)
        assert bodies(harness.gather(consumer, 1)) == ["b"]
        assert harness.receives_nothing(consumer, queue)

    def test_delayed_message_comes_when_it_is_due(self, harness: Harness) -> None:
        """A receive that waits gets the message when its delay is over, counted."""
        harness.require("redelivery_delay", "delivery_count")
        queue = harness.queue()
        harness.send(queue, "a")
        consumer = harness.connection.consumer(queue)
        harness.holding(harness.gather(consumer, 1)).rollback(delay=0.05)
        assert [d.count for d in harness.gather(consumer, 1)] == [2]

    @pytest.mark.parametrize("order", list(Order))
    def test_rolled_back_message_can_be_committed(self, harness: Harness, order: Order) -> None:
        """The second attempt is an attempt like the first: after its commit the message is gone."""
        queue = harness.queue()
        harness.send(queue, *"ab")
        consumer = harness.connection.consumer(queue, order=order)
        harness.holding(harness.gather(consumer, 2)).rollback()
        again = harness.gather(consumer, 2)
        for chunk in [again] if order is Order.PREFIX else [[delivery] for delivery in again]:
            harness.settle(chunk)
        harness.connection.close()
        harness.expect(queue)
