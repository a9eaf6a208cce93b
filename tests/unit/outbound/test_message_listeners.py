"""Message listeners of a session's consumers: their thread, settlement, failures and closing (JMS 3.1, section 8.7)."""

import threading
from functools import partial
from itertools import pairwise
from queue import SimpleQueue

import pytest

from jmsjca import AcknowledgeMode, Message, Queue, Requestor, TextMessage
from jmsjca.errors import IllegalStateError, JMSError, NotSupportedError
from jmsjca.outbound.consumer import MAX_FAILURES
from jmsjca.providers.embedded.consumer import EmbeddedConsumer
from tests.unit.outbound.queues import PATIENCE, QUEUE, put, shown, take

OTHER = Queue("other")
AUTOMATIC = [AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK]


class Inbox(SimpleQueue):
    """A listener that keeps what it receives, and the threads that call it."""

    def __init__(self):
        self.threads = set()

    def __call__(self, message):
        self.threads.add(threading.current_thread())
        self.put(message)

    def next(self) -> Message:
        return self.get(timeout=PATIENCE)

    def bodies(self, count):
        return [self.next().body for _ in range(count)]


class Gate:
    """A listener that waits until `release` is set; `entered` tells that it was called."""

    def __init__(self, then=lambda message: None):
        self.entered, self.release, self._then = threading.Event(), threading.Event(), then

    def __call__(self, message):
        self.entered.set()
        assert self.release.wait(PATIENCE)
        self._then(message)


@pytest.fixture
def inbox():
    return Inbox()


@pytest.fixture
def stopped(jms_connection_factory):
    """A connection that is not started."""
    connection = jms_connection_factory.create_connection()
    yield connection
    connection.close()


def test_messages_are_delivered_in_order(connection, other, inbox):
    connection.create_session().create_consumer(QUEUE).set_message_listener(inbox)
    put(other, *"abcdefghijklmnopqrstuvwxyz")
    assert inbox.bodies(26) == list("abcdefghijklmnopqrstuvwxyz")


def test_delivery_begins_with_the_start(stopped, other, inbox):
    put(other, "a")
    stopped.create_session().create_consumer(QUEUE).set_message_listener(inbox)
    assert inbox.empty()
    stopped.start()
    assert inbox.bodies(1) == ["a"]


def test_one_thread_of_the_session_calls_all_listeners(stopped, other, inbox):
    session = stopped.create_session()
    for queue in (QUEUE, OTHER):
        session.create_consumer(queue).set_message_listener(inbox)
        put(other, *"abc", to=queue)
    stopped.start()
    assert sorted(inbox.bodies(6)) == list("aabbcc")
    assert len(inbox.threads) == 1


def test_consumers_of_a_session_take_turns(stopped, other):
    """While one consumer has prefetched messages, those of the others are delivered in between."""
    session, delivered = stopped.create_session(), []
    done = threading.Event()

    def note(message):
        with session._listeners._changed:  # the first call waits until both consumers have messages
            if not delivered:
                assert session._listeners._changed.wait_for(
                    lambda: all(each._receiver.has_messages() for each in consumers), PATIENCE
                )
        delivered.append(message.body[0])
        if len(delivered) == 8:
            done.set()

    consumers = [session.create_consumer(queue) for queue in (QUEUE, OTHER)]
    put(other, "a1", "a2", "a3", "a4", "a5")
    put(other, "b1", "b2", "b3", "b4", "b5", to=OTHER)
    for consumer in consumers:
        consumer.set_message_listener(note)
    stopped.start()
    assert done.wait(PATIENCE)
    assert all(one != next_one for one, next_one in pairwise(delivered[:8]))


def test_sessions_have_threads_of_their_own(connection, other, inbox):
    gate = Gate()
    connection.create_session().create_consumer(QUEUE).set_message_listener(gate)
    connection.create_session().create_consumer(OTHER).set_message_listener(inbox)
    put(other, "a")
    assert gate.entered.wait(PATIENCE)
    put(other, "b", to=OTHER)
    assert inbox.bodies(1) == ["b"]
    gate.release.set()


@pytest.mark.parametrize("mode", AUTOMATIC)
def test_message_is_acknowledged_when_the_listener_has_returned(connection, other, mode):
    gate = Gate()
    session = connection.create_session(acknowledge_mode=mode)
    session.create_consumer(QUEUE).set_message_listener(gate)
    put(other, "a")
    assert gate.entered.wait(PATIENCE)
    assert other.admin.depth(QUEUE).held == 1
    gate.release.set()
    session.close()
    assert other.admin.depth(QUEUE).total == 0


@pytest.mark.parametrize("mode", AUTOMATIC)
def test_failed_message_is_redelivered_at_once_and_counted(connection, other, caplog, mode):
    seen = SimpleQueue()

    def fail_twice(message):
        seen.put((message.body, message.redelivered, message.delivery_count))
        if message.delivery_count < 3:
            raise ZeroDivisionError

    put(other, "a", "b")
    connection.create_session(acknowledge_mode=mode).create_consumer(QUEUE).set_message_listener(fail_twice)
    calls = [seen.get(timeout=PATIENCE) for _ in range(3)]
    assert calls == [("a", False, 1), ("a", True, 2), ("a", True, 3)]
    assert seen.get(timeout=PATIENCE)[0] == "b"
    failures = [record for record in caplog.records if record.exc_info and "fail_twice" in record.getMessage()]
    assert len(failures) >= 2


def test_listener_that_never_succeeds_is_removed_and_its_message_kept(connection, other, caplog):
    told, calls = SimpleQueue(), []

    def fail(message):
        calls.append(message.body)
        raise ZeroDivisionError(message.body)

    connection.exception_listener = told.put
    put(other, "a", "b")
    consumer = connection.create_session().create_consumer(QUEUE)
    consumer.set_message_listener(fail)
    error = told.get(timeout=PATIENCE)
    assert isinstance(error, JMSError)
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert f"{MAX_FAILURES} times" in str(error)
    assert calls == ["a"] * MAX_FAILURES
    assert consumer.message_listener is None
    assert shown(other) == ["a", "b"]
    assert str(error) in caplog.text


def test_failures_are_counted_in_a_row(connection, other):
    told, done, numbers = [], threading.Event(), []

    def fail_often(message):
        numbers.append(message.delivery_count)
        if message.body == "end":
            done.set()
        elif message.delivery_count < MAX_FAILURES // 2 + 2:
            raise ZeroDivisionError

    connection.exception_listener = told.append
    put(other, "a", "b", "c", "end")
    connection.create_session().create_consumer(QUEUE).set_message_listener(fail_often)
    assert done.wait(PATIENCE)
    assert told == []


@pytest.mark.parametrize("options", [{"acknowledge_mode": AcknowledgeMode.CLIENT}, {"transacted": True}])
def test_after_a_failure_the_next_message_follows_where_the_application_settles(connection, other, options):
    inbox, seen = Inbox(), []

    def fail_first(message):
        seen.append(message.body)
        if message.body == "a":
            raise ZeroDivisionError
        session.acknowledge()
        if session.transacted:
            session.commit()
        inbox(message)

    session = connection.create_session(**options)
    put(other, "a", "b")
    session.create_consumer(QUEUE).set_message_listener(fail_first)
    assert inbox.bodies(1) == ["b"]
    session.close()
    assert seen == ["a", "b"]
    assert shown(other) == []


def test_individual_acknowledgement_leaves_a_failed_message(connection, other, inbox):
    def fail_first(message):
        if message.body == "a":
            raise ZeroDivisionError
        message.acknowledge()
        inbox(message)

    session = connection.create_session(acknowledge_mode=AcknowledgeMode.INDIVIDUAL)
    put(other, "a", "b")
    session.create_consumer(QUEUE).set_message_listener(fail_first)
    assert inbox.bodies(1) == ["b"]
    session.close()
    assert shown(other) == ["a"]


def test_listener_rolls_back_and_receives_again(connection, other, inbox):
    def roll_back_once(message):
        inbox(message)
        (session.commit if message.redelivered else session.rollback)()

    session = connection.create_session(transacted=True)
    put(other, "a", "b")
    session.create_consumer(QUEUE).set_message_listener(roll_back_once)
    assert inbox.bodies(3)[:2] == ["a", "a"]


def test_rollback_releases_what_other_consumers_fetched(stopped, other):
    """However the threads meet, each message is delivered until it is committed, and none is lost."""
    session, committed = stopped.create_session(transacted=True), Inbox()

    def roll_back_once(message):
        if message.redelivered:
            session.commit()
            committed(message)
        else:
            session.rollback()

    for queue in (QUEUE, OTHER):
        put(other, *(str(number) for number in range(30)), to=queue)
        session.create_consumer(queue).set_message_listener(roll_back_once)
    stopped.start()
    assert sorted(committed.bodies(60)) == sorted([str(number) for number in range(30)] * 2)
    session.close()
    assert shown(other) == shown(other, OTHER) == []


def test_what_is_fetched_during_a_rollback_is_redelivered(connection, other, caplog, monkeypatch):
    """The rollback has released it before the listener's thread sees it, which is no failure."""
    fetched, rolled_back, committed = threading.Event(), threading.Event(), Inbox()
    real = EmbeddedConsumer.receive

    def receive(self, *args):
        chunk = real(self, *args)
        if not rolled_back.is_set() and any(delivery.message.body == "b2" for delivery in chunk):
            fetched.set()
            assert rolled_back.wait(PATIENCE)
        return chunk

    def listen(message):
        if message.body == "a" and not message.redelivered:
            put(other, "b2", to=OTHER)
            assert fetched.wait(PATIENCE)
            session.rollback()
            rolled_back.set()
        elif message.redelivered or message.body == "b2":
            session.commit()
            committed(message)
        else:
            put(other, "a")  # b1 belongs to the transaction now

    monkeypatch.setattr(EmbeddedConsumer, "receive", receive)
    session = connection.create_session(transacted=True)
    for consumer in [session.create_consumer(queue) for queue in (QUEUE, OTHER)]:
        consumer.set_message_listener(listen)
    put(other, "b1", to=OTHER)
    assert sorted(committed.bodies(3)) == ["a", "b1", "b2"]
    session.close()
    assert not caplog.records


def test_recover_redelivers_the_message_of_the_running_listener(connection, other, inbox):
    def recover_once(message):
        inbox(message)
        if not message.redelivered:
            session.recover()

    session = connection.create_session()
    put(other, "a", "b")
    session.create_consumer(QUEUE).set_message_listener(recover_once)
    first, second = inbox.next(), inbox.next()
    assert [(m.body, m.delivery_count) for m in (first, second)] == [("a", 1), ("a", 2)]


def test_listener_may_send_and_create_with_its_session(connection, other):
    def reply(message):
        session.create_producer(OTHER).send(session.create_text_message(message.body.upper()))

    session = connection.create_session()
    session.create_consumer(QUEUE).set_message_listener(reply)
    put(other, "a")
    with other.create_session() as receiving:
        assert take(receiving.create_consumer(OTHER), 1) == ["A"]


def test_session_with_a_listener_cannot_receive(connection, other):
    session, told = connection.create_session(), SimpleQueue()
    idle = session.create_consumer(OTHER)

    def receive(_):
        with pytest.raises(IllegalStateError, match="message listener") as raised:
            idle.receive(0)
        told.put(raised.value)

    session.create_consumer(QUEUE).set_message_listener(receive)
    put(other, "a")
    assert told.get(timeout=PATIENCE)


def test_session_with_a_listener_cannot_receive_before_the_start_either(stopped, inbox):
    session = stopped.create_session()
    session.create_consumer(QUEUE).set_message_listener(inbox)
    with pytest.raises(IllegalStateError, match="message listener"):
        session.create_consumer(OTHER).receive(0)


def test_other_threads_cannot_use_a_session_with_a_listener(connection, other, inbox):
    session = connection.create_session(transacted=True)
    producer = session.create_producer(QUEUE)
    session.create_consumer(QUEUE).set_message_listener(inbox)
    put(other, "a")
    assert inbox.bodies(1) == ["a"]
    for call in (session.commit, lambda: producer.send(TextMessage("b")), lambda: session.create_consumer(OTHER)):
        with pytest.raises(IllegalStateError, match="jmsjca listeners"):
            call()


def test_session_is_free_while_the_connection_is_stopped(stopped, other, inbox):
    session = stopped.create_session()
    session.create_consumer(QUEUE).set_message_listener(inbox)
    stopped.start()
    put(other, "a")
    assert inbox.bodies(1) == ["a"]
    stopped.stop()
    put(other, "b")
    session.create_consumer(OTHER).set_message_listener(inbox)
    assert inbox.empty()
    stopped.start()
    assert inbox.bodies(1) == ["b"]


def test_removed_listener_leaves_the_session_to_synchronous_receives(connection, other, inbox):
    session = connection.create_session()
    consumer = session.create_consumer(QUEUE)
    consumer.set_message_listener(inbox)
    assert consumer.message_listener is inbox
    put(other, "a")
    assert inbox.bodies(1) == ["a"]
    consumer.set_message_listener(None)
    put(other, "b")
    assert take(consumer, 1) == ["b"]
    assert consumer.message_listener is None
    consumer.set_message_listener(inbox)
    put(other, "c")
    assert inbox.bodies(1) == ["c"]


def test_listener_can_be_replaced(connection, other, inbox):
    later = Inbox()
    consumer = connection.create_session().create_consumer(QUEUE)
    consumer.set_message_listener(inbox)
    put(other, "a")
    assert inbox.bodies(1) == ["a"]
    consumer.set_message_listener(later)
    put(other, "b")
    assert later.bodies(1) == ["b"]


@pytest.mark.parametrize("end", ["session", "connection", "consumer", "stop", "removal"])
def test_end_waits_for_a_running_listener(connection, other, in_thread, end):
    session, done = connection.create_session(), Inbox()

    def send(message):
        session.create_producer(OTHER).send(TextMessage("still open"))
        done(message)

    gate = Gate(send)
    consumer = session.create_consumer(QUEUE)
    consumer.set_message_listener(gate)
    put(other, "a")
    assert gate.entered.wait(PATIENCE)
    calls = {
        "session": session.close,
        "connection": connection.close,
        "consumer": consumer.close,
        "stop": connection.stop,
        "removal": lambda: consumer.set_message_listener(None),
    }
    ending = in_thread(calls[end])
    assert not ending.ended()
    gate.release.set()
    ending.result()
    assert done.bodies(1) == ["a"]
    assert shown(other, OTHER) == ["still open"]
    assert shown(other) == []


@pytest.mark.parametrize("end", ["stop", "session", "consumer"])
def test_no_message_is_delivered_after_the_end(connection, other, inbox, end):
    session = connection.create_session()
    consumer = session.create_consumer(QUEUE)
    consumer.set_message_listener(inbox)
    put(other, "a")
    assert inbox.bodies(1) == ["a"]
    {"stop": connection.stop, "session": session.close, "consumer": consumer.close}[end]()
    put(other, "b")
    assert inbox.empty()
    assert shown(other) == ["b"]


def test_listener_cannot_end_what_waits_for_it(connection, other):
    session, told = connection.create_session(), SimpleQueue()

    def end(_):
        for call in (session.close, connection.close, connection.stop):
            with pytest.raises(IllegalStateError, match=r"6\.1\.8"):
                call()
        told.put("refused")

    session.create_consumer(QUEUE).set_message_listener(end)
    put(other, "a")
    assert told.get(timeout=PATIENCE) == "refused"
    assert not session.closed


def test_listener_may_close_its_consumer_and_is_acknowledged(connection, other, inbox):
    def close(message):
        consumer.close()
        inbox(message)

    session = connection.create_session()
    consumer = session.create_consumer(QUEUE)
    consumer.set_message_listener(close)
    put(other, "a", "b")
    assert inbox.bodies(1) == ["a"]
    session.close()
    assert shown(other) == ["b"]


def test_closing_the_last_listening_consumer_frees_the_session(connection, other, inbox):
    session = connection.create_session()
    listening = session.create_consumer(QUEUE)
    listening.set_message_listener(inbox)
    listening.close()
    put(other, "a", to=OTHER)
    assert take(session.create_consumer(OTHER), 1) == ["a"]


def test_context_delivers_to_listeners_without_a_start(context, other, inbox):
    """The second listener is set while the first one is at work (6.2.6)."""
    consumers = [context.create_consumer(queue) for queue in (QUEUE, OTHER)]
    for consumer, queue in zip(consumers, (QUEUE, OTHER), strict=True):
        consumer.set_message_listener(inbox)
        put(other, "a", to=queue)
        assert inbox.bodies(1) == ["a"]


def test_requestor_refuses_a_session_with_a_listener(connection, other):
    session, told = connection.create_session(), SimpleQueue()

    def ask(message):
        try:
            with Requestor(session, OTHER) as requestor:
                requestor.request(TextMessage("q"), timeout=0)
        except IllegalStateError as error:
            told.put(error)

    session.create_consumer(QUEUE).set_message_listener(ask)
    put(other, "a")
    assert "synchronously" in str(told.get(timeout=PATIENCE))


def test_closed_consumer_takes_no_listener(connection, inbox):
    consumer = connection.create_session().create_consumer(QUEUE)
    consumer.close()
    with pytest.raises(IllegalStateError, match="closed"):
        consumer.set_message_listener(inbox)


def test_what_is_no_plain_function_is_refused(connection):
    async def listen(message):
        """Never called."""

    class Listener:
        async def __call__(self, message):
            """Never called."""

    def generate(message):
        yield message

    consumer = connection.create_session().create_consumer(QUEUE)
    for wrong in (listen, "listener", Listener(), partial(listen), generate):
        with pytest.raises(NotSupportedError, match="aio"):
            consumer.set_message_listener(wrong)
    assert consumer.message_listener is None


def test_listener_that_exits_counts_as_failed(connection, other, inbox):
    def leave(message):
        inbox(message)
        if not message.redelivered:
            raise SystemExit

    connection.create_session().create_consumer(QUEUE).set_message_listener(leave)
    put(other, "a", "b")
    assert inbox.bodies(2) == ["a", "a"]
