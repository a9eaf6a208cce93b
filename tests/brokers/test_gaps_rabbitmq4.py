"""What RabbitMQ 4 does over AMQP 1.0, frame by frame: the evidence of its gaps, and of what is relied upon."""

import uuid

import pytest
from gap_links import Receiver, end_over_a_sender, send
from proton import Delivery, Described, Endpoint, Link, Message, symbol

QUORUM = {"x-queue-type": "quorum", "x-delivery-limit": 1000}


class Management:
    """The pair of links to the broker's management."""

    def __init__(self, connection):
        self._connection = connection.connection
        self.session = self._connection.conn.session()
        self.session.open()
        name = uuid.uuid4().hex
        self._receiver, self._sender = self.session.receiver(name), self.session.sender(name)
        for link, node, own in ((self._receiver, "source", "target"), (self._sender, "target", "source")):
            getattr(link, node).address, getattr(link, own).address = "/management", name
            link.snd_settle_mode = Link.SND_SETTLED
            link.properties = {symbol("paired"): True}
            link.open()
        self._receiver.flow(10)
        self._connection.wait(lambda: self._sender.credit, msg="credit")

    def ask(self, method, path, body=None):
        """Send a request; return the status and the body of the answer."""
        request = Message(body, id=uuid.uuid4().hex, address=path, subject=method, reply_to="$me")
        self._sender.delivery(uuid.uuid4().hex)
        self._sender.send(bytes(request.encode()) + (b"\0\x53\x77\x40" if body is None else b""))
        self._sender.current.settle()
        self._connection.wait(
            lambda: self._receiver.current or self.session.state & Endpoint.REMOTE_CLOSED, msg="an answer"
        )
        if not self._receiver.current:
            return self.session.remote_condition
        answer = Message()
        answer.decode(self._receiver.recv(self._receiver.current.pending))
        self._receiver.current.settle()
        return int(answer.subject), answer.body


@pytest.fixture
def connection(amqp):
    return amqp("rabbitmq4")


@pytest.fixture
def quorum(connection):
    """The address of a new quorum queue."""
    return declared(connection, QUORUM)


def declared(connection, arguments):
    name = f"gap.{uuid.uuid4().hex}"
    status, _ = Management(connection).ask("PUT", f"/queues/{name}", {"durable": True, "arguments": arguments})
    assert status == 201
    return f"/queues/{name}"


def settle(connection, delivery, state, *, failed=False):
    delivery.local.failed = failed
    delivery.update(state)
    delivery.settle()
    send(connection, f"/queue/flush.{uuid.uuid4().hex}", "what was written before is there by now")


def test_a_quorum_queue_has_two_levels_of_priority(connection, quorum):
    send(connection, quorum, *(Message(body=p, priority=p, durable=True) for p in (0, 9, 5, 4)))
    assert Receiver(connection, quorum, 4).bodies(4) == [9, 5, 0, 4]


def test_a_classic_queue_with_priorities_has_all(connection):
    classic = declared(connection, {"x-queue-type": "classic", "x-max-priority": 9})
    send(connection, classic, *(Message(body=p, priority=p, durable=True) for p in (0, 9, 5, 3)))
    assert Receiver(connection, classic, 4).bodies(4) == [9, 5, 3, 0]


@pytest.mark.parametrize(
    ("state", "failed", "count"),
    [(Delivery.RELEASED, False, 0), (Delivery.MODIFIED, False, 0), (Delivery.MODIFIED, True, 1)],
)
def test_a_quorum_queue_counts_failures_alone(connection, quorum, state, failed, count):
    send(connection, quorum, "a", "b")
    receiver = Receiver(connection, quorum, 1)
    settle(connection, receiver.take()[1], state, failed=failed)
    receiver.link.flow(1)
    message, _ = receiver.take()
    assert (message.body, message.delivery_count, message.first_acquirer) == ("a", count, False)


def test_a_classic_queue_counts_nothing(connection):
    classic = declared(connection, {"x-queue-type": "classic"})
    send(connection, classic, "a")
    receiver = Receiver(connection, classic, 1)
    settle(connection, receiver.take()[1], Delivery.MODIFIED, failed=True)
    receiver.link.flow(1)
    message, _ = receiver.take()
    assert (message.delivery_count, message.first_acquirer) == (0, False)


def test_a_quorum_queue_without_a_limit_puts_what_is_released_behind_the_others(connection):
    unlimited = declared(connection, {**QUORUM, "x-delivery-limit": -1})
    send(connection, unlimited, "a", "b")
    receiver = Receiver(connection, unlimited, 1)
    settle(connection, receiver.take()[1], Delivery.RELEASED)
    receiver.link.flow(2)
    assert receiver.bodies(2) == ["b", "a"]


def test_what_is_rejected_goes_to_the_dead_letter_exchange_and_else_away(connection):
    dead = declared(connection, QUORUM)
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead.removeprefix("/queues/")}
    for arguments in (QUORUM | to_dead, QUORUM):
        queue = declared(connection, arguments)
        send(connection, queue, "a")
        settle(connection, Receiver(connection, queue, 1).take()[1], Delivery.REJECTED)
        assert Management(connection).ask("GET", queue)[1]["message_count"] == 0
    assert Receiver(connection, dead, 2).bodies(1) == ["a"]
    assert Management(connection).ask("GET", dead)[1]["message_count"] == 0


def test_what_no_queue_takes_is_released(connection):
    """Also to a topic that has no subscribers."""
    queue = declared(connection, QUORUM)
    senders = [connection.connection.create_sender(to) for to in (queue, f"/exchanges/amq.topic/{uuid.uuid4().hex}")]
    Management(connection).ask("DELETE", queue)
    for sender in senders:
        delivery = sender.link.send(Message(body="a", durable=True))
        connection.connection.wait(lambda delivery=delivery: delivery.settled, msg="an outcome")
        assert delivery.remote_state == Delivery.RELEASED


def test_a_queue_that_is_full_rejects_without_a_reason(connection):
    """Later releases tell one."""
    full = declared(connection, {"x-queue-type": "classic", "x-max-length": 1, "x-overflow": "reject-publish"})
    sender = connection.connection.create_sender(full)
    outcomes = []
    for _ in range(3):
        delivery = sender.link.send(Message(body="a", durable=True))
        connection.connection.wait(lambda delivery=delivery: delivery.settled, msg="an outcome")
        outcomes.append((delivery.remote_state, delivery.remote.condition))
    assert outcomes[-1] == (Delivery.REJECTED, None)


@pytest.mark.parametrize("credit", [0, 5])
def test_each_drain_is_answered_even_without_credit(connection, quorum, credit, capfd):
    receiver = Receiver(connection, quorum, credit)
    frames = []

    def answered():
        frames.extend("".join(capfd.readouterr()).splitlines())
        return any("<- @flow" in frame and "drain=true" in frame for frame in frames)

    for _ in range(2):
        frames.clear()
        receiver.link.drain(0)
        connection.connection.wait(answered, msg="the answer to a drain")
        receiver.link.drain_mode = False


def test_a_message_without_a_body_ends_the_session(connection, quorum):
    sender = connection.connection.create_sender(quorum)
    sender.link.send(Message(durable=True))
    connection.connection.wait(lambda: sender.link.session.state & Endpoint.REMOTE_CLOSED, msg="the end of the session")
    assert sender.link.session.remote_condition.name == "amqp:internal-error"


def test_a_queue_that_is_not_there_ends_the_session(connection):
    why = end_over_a_sender(connection, lambda target: setattr(target, "address", f"/queues/{uuid.uuid4().hex}"))
    assert why.name == "amqp:not-found"


@pytest.mark.parametrize("end", ["target", "source"])
def test_nothing_is_made_dynamically(connection, end):
    session = connection.connection.conn.session()
    session.open()
    link = session.sender("dynamic") if end == "target" else session.receiver("dynamic")
    getattr(link, end).dynamic = True
    link.open()
    connection.connection.wait(lambda: session.state & Endpoint.REMOTE_CLOSED, msg="the end of the session")
    assert session.remote_condition.name == "amqp:not-implemented"


@pytest.mark.parametrize(("values", "expected"), [(None, ["0", "1", "2"]), (["eu"], ["0", "2"]), ("us", ["1"])])
def test_a_stream_has_offsets_and_filter_values_which_the_broker_sends_back(connection, values, expected):
    """Each message here is a chunk of its own, which it sends or skips."""
    stream = declared(connection, {"x-queue-type": "stream"})
    for number, region in enumerate(("eu", "us", "eu")):
        annotations = {symbol("x-stream-filter-value"): region}
        send(connection, stream, Message(body=str(number), durable=True, annotations=annotations))
    filters = {"rabbitmq:stream-offset-spec": "first", **({"rabbitmq:stream-filter": values} if values else {})}
    described = {symbol(name): Described(symbol(name), value) for name, value in filters.items()}
    receiver = Receiver(connection, stream, 10, lambda link: link.source.filter.put_object(described))
    attached = receiver.link.remote_source.filter
    assert attached.next()
    assert set(attached.get_object()) == set(described)
    messages = [receiver.take()[0] for _ in expected]
    assert [message.body for message in messages] == expected
    assert [str(message.annotations["x-stream-offset"]) for message in messages] == expected


def test_the_management_counts_what_waits_and_not_what_is_held(connection, quorum):
    send(connection, quorum, "a", "b")
    Receiver(connection, quorum, 1).take()
    assert Management(connection).ask("GET", quorum)[1]["message_count"] == 1


def test_a_quorum_queue_is_not_deleted_with_its_last_consumer(connection):
    request = {"auto_delete": True, "arguments": QUORUM}
    status, reason = Management(connection).ask("PUT", f"/queues/gap.{uuid.uuid4().hex}", request)
    assert (status, "auto-delete" in reason) == (400, True)


def test_the_management_lists_no_queues(connection):
    assert Management(connection).ask("GET", "/queues").name == "amqp:internal-error"


def test_an_exclusive_queue_is_its_connections(amqp, connection):
    name = f"gap.{uuid.uuid4().hex}"
    Management(connection).ask("PUT", f"/queues/{name}", {"exclusive": True, "arguments": {}})
    other = amqp("rabbitmq4")
    session = other.connection.conn.session()
    session.open()
    receiver = session.receiver("r")
    receiver.source.address = f"/queues/{name}"
    receiver.open()
    other.connection.wait(lambda: session.state & Endpoint.REMOTE_CLOSED, msg="the end of the session")
    assert session.remote_condition.name == "amqp:resource-locked"
