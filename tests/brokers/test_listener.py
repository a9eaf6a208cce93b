"""A serial listener over every pair of a broker and a protocol, and through the death of its broker."""

import threading
import uuid

import pytest
from brokers import PAIRS

from jmsjca import ConnectionFactory, Outcome, Queue, ResourceAdapter, TextMessage
from jmsjca.errors import NotSupportedError
from jmsjca.providers.amqp.links.link_pool import MAX_SENDER_LINKS
from tests.unit.inbound.listeners import PATIENCE, Inbox, Recorder, send

IN_EVERY_RUN = {"artemis-amqp", "activemq-stomp"}
EVERY_BROKER = [pytest.param(p, marks=[] if p in IN_EVERY_RUN else [pytest.mark.torture]) for p in PAIRS]


def until(inbox, last):
    """The bodies that come, up to the last one."""
    bodies = []
    while last not in bodies:
        bodies += [body for body, _ in inbox.take(1)]
    return bodies


@pytest.fixture
def name():
    return f"listener.{uuid.uuid4().hex}"


@pytest.mark.parametrize("pair", PAIRS)
def test_a_failed_message_comes_again_before_the_later_ones(pair, broker_url, name):
    inbox, recorder = Inbox(ValueError("not now")), Recorder()
    adapter = ResourceAdapter(broker_url(pair), hooks=[recorder])
    send(adapter, "a", "b", "c", to=name)
    adapter.listener(name)(inbox)
    with adapter:
        recorder.await_outcome(Outcome.ROLLED_BACK)
        for _ in "abc":
            recorder.await_outcome(Outcome.COMMITTED)
    assert [body for body, _ in inbox.take(4)] == ["a", "a", "b", "c"]


class Forwarding:
    """A handler that sends on what it got, fails after its first attempt, and keeps what refused a send."""

    def __init__(self, to):
        self._to = Queue(to)
        self._failures = [ValueError("after the send")]
        self.refusals = []

    def __call__(self, message, session):
        try:
            session.create_producer(self._to).send(TextMessage(message.body.upper()))
        except NotSupportedError as refusal:
            self.refusals.append(str(refusal))
        if self._failures:
            raise self._failures.pop()


def through_adapter(adapter, to):
    """A handler that sends through its adapter, and fails after its first attempt."""
    failures = [ValueError("after the send")]

    def handler(message):
        adapter.send(to, message.body.upper())
        adapter.send_many(to, ["b", "c"])
        if failures:
            raise failures.pop()

    return handler


def through_adapter_on_a_loop(adapter, to):
    """The same as a coroutine."""
    failures = [ValueError("after the send")]

    async def handler(message):
        await adapter.send_async(to, message.body.upper())
        await adapter.send_async(to, "b")
        await adapter.send_async(to, "c")
        if failures:
            raise failures.pop()

    return handler


def forwarded(url, name, handler=None, make=None, **spec):
    """What comes where the handler sends to, of a message that it gets twice."""
    recorder, results = Recorder(), Inbox()
    adapter = ResourceAdapter(url, hooks=[recorder])
    adapter.listener(name, **spec)(handler or make(adapter, f"{name}.out"))
    with adapter:
        send(adapter, "a", to=name)
        recorder.await_outcome(Outcome.ROLLED_BACK)
        recorder.await_outcome(Outcome.COMMITTED)
        adapter.listener(f"{name}.out")(results)
        send(adapter, "last", to=f"{name}.out")
        return until(results, "last")


@pytest.mark.parametrize("pair", PAIRS)
def test_what_a_handler_sends_belongs_to_its_delivery(pair, broker_url, name):
    """It is sent twice and comes once; where that cannot be, both times the send is refused."""
    url, handler = broker_url(pair), Forwarding(f"{name}.out")
    with ConnectionFactory(url).create_connection() as connection:
        atomic = connection.capabilities.atomic
    assert forwarded(url, name, handler) == (["A", "last"] if atomic else ["last"])
    assert ["atomic" in refusal for refusal in handler.refusals] == ([] if atomic else [True, True])


@pytest.mark.parametrize("make", [through_adapter, through_adapter_on_a_loop])
@pytest.mark.parametrize("pair", PAIRS)
def test_what_a_handler_sends_through_its_adapter_belongs_to_its_delivery(pair, broker_url, name, make):
    """Also where the broker cannot acknowledge and send together: the failed attempt sends nothing."""
    assert forwarded(broker_url(pair), name, make=make) == ["A", "b", "c", "last"]


@pytest.mark.parametrize("pair", PAIRS)
def test_without_a_transaction_each_send_of_a_handler_counts(pair, broker_url, name):
    """At once, whatever becomes of the delivery; so every broker can do it."""
    handler = Forwarding(f"{name}.out")
    assert forwarded(broker_url(pair), name, handler, transaction="none") == ["A", "A", "last"]
    assert handler.refusals == []


@pytest.mark.parametrize("pair", EVERY_BROKER)
def test_a_listener_outlives_its_broker(pair, own_broker, name):
    kind, protocol = pair.split("-")
    broker = own_broker(kind)
    inbox, recorder = Inbox(), Recorder()
    adapter = ResourceAdapter(broker.url(protocol), hooks=[recorder])
    adapter.listener(name)(inbox)
    with adapter:
        recorder.await_status("Connecting", "Up")
        send(adapter, "before", to=name)
        assert [body for body, _ in inbox.take(1)] == ["before"]
        recorder.await_outcome(Outcome.COMMITTED)
        broker.kill()
        recorder.await_status("Connecting")
        broker.restart()
        recorder.await_status("Up")
        send(adapter, "after", to=name)
        again = ["before"] if kind == "rabbitmq" else []  # it confirms an acknowledgement before that is on its disk
        assert until(inbox, "after") in (["after"], [*again, "after"])


@pytest.mark.parametrize("is_answered_before", [False, True])
@pytest.mark.parametrize("pair", ["artemis-amqp", "activemq-amqp", "qpid-amqp", "rabbitmq4-amqp"])
def test_a_request_whose_requester_is_gone_is_committed(pair, broker_url, name, is_answered_before):
    """A requester that was answered before has left a link to its queue."""
    url, recorder, calls, gone = broker_url(pair), Recorder(), [], threading.Event()
    adapter = ResourceAdapter(url, hooks=[recorder])

    @adapter.listener(name, transaction="none" if "rabbitmq" in pair else "local")
    def answer(message):
        calls.append(message.body)
        assert message.body == "early" or gone.wait(PATIENCE)
        return "a reply"

    with adapter:
        with ConnectionFactory(url).create_connection() as requester, requester.create_session() as session:
            replies, producer = session.create_temporary_queue(), session.create_producer(Queue(name))
            if is_answered_before:
                producer.send(TextMessage("early", reply_to=replies))
                assert session.create_consumer(replies).receive(PATIENCE).body == "a reply"
                recorder.await_outcome(Outcome.COMMITTED)
            producer.send(TextMessage("late", reply_to=replies))
        gone.set()
        if recorder.outcomes.get(timeout=PATIENCE)[0] is not Outcome.COMMITTED:  # the link is still attached
            recorder.await_outcome(Outcome.COMMITTED)
    assert calls.count("late") <= 2


@pytest.mark.parametrize("pair", ["artemis-amqp", "activemq-amqp", "qpid-amqp"])
def test_a_request_whose_requester_is_gone_is_committed_by_a_listener_with_many_destinations(pair, broker_url, name):
    """It sends to most of them over one link, which takes messages to any destination."""
    url, recorder, calls, gone = broker_url(pair), Recorder(), [], threading.Event()
    adapter = ResourceAdapter(url, hooks=[recorder])

    @adapter.listener(name)
    def answer(message, session):
        calls.append(message.body)
        if message.body == "late":
            assert gone.wait(PATIENCE)
            return "a reply"
        for number in range(MAX_SENDER_LINKS):
            session.create_producer(Queue(f"{name}.{number}")).send("work")
        return None

    with adapter:
        send(adapter, "early", to=name)
        recorder.await_outcome(Outcome.COMMITTED)
        with ConnectionFactory(url).create_connection() as requester, requester.create_session() as session:
            replies = session.create_temporary_queue()
            session.create_producer(Queue(name)).send(TextMessage("late", reply_to=replies))
        gone.set()
        recorder.await_outcome(Outcome.COMMITTED)
    assert calls == ["early", "late"]
