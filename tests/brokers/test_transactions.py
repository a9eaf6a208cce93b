"""What brokers do in a transaction: with refused and large messages, and why commits never overlap."""

import random
import uuid

import pytest
from proton import Endpoint
from proton.utils import LinkDetached
from raw_amqp import ACCEPTED, MODIFIED, REJECTED, RELEASED, RawAMQP
from raw_stomp import RawSTOMP

from jmsjca import ConnectionFactory, MapMessage, Queue, TextMessage
from jmsjca.errors import TransactionRolledBackError
from jmsjca.providers.amqp.admin import ManagementClient
from jmsjca.reconnection import ConnectionSettings, connect

MARKER = "the last"
CAPABILITIES = {"artemis": "queue", "activemq": "queue", "qpid": None}
ANYCAST = {"destination_type": "ANYCAST"}


@pytest.fixture
def queue():
    return f"statement.{uuid.uuid4().hex}"


@pytest.fixture
def amqp(broker_url, queue):
    """Give a function that connects to a broker."""
    return lambda broker: RawAMQP(broker_url(f"{broker}-amqp"), CAPABILITIES[broker])


@pytest.fixture
def stomp(broker_url):
    return lambda broker: RawSTOMP(broker_url(f"{broker}-stomp"))


def two_stomp_transactions(connection, destination, mode, send=(), subscribe=()):
    """Acknowledge "a" in one transaction and "b" in another, commit the second, then abort the first."""
    for body in "abc":
        connection.confirm("SEND", body, destination=destination, persistent="true", **dict(send))
    connection.write("SUBSCRIBE", destination=destination, id="1", ack=mode, **dict(subscribe))
    taken = {body: headers["ack"] for _, headers, body in [connection.read() for _ in "abc"]}
    for name in ("one", "two"):
        assert connection.confirm("BEGIN", transaction=name) == "RECEIPT"
    assert connection.confirm("ACK", id=taken["a"], transaction="one") == "RECEIPT"
    assert connection.confirm("ACK", id=taken["b"], transaction="two") == "RECEIPT"
    assert connection.confirm("COMMIT", transaction="two") == "RECEIPT"
    assert connection.confirm("ABORT", transaction="one") == "RECEIPT"
    connection.close()


def left_over_stomp(connection, destination, at_least, send=(), subscribe=()):
    """The bodies in a queue: so many for certain (a broker gives them back some time after their consumer went), then
    what comes before a marker."""
    connection.write("SUBSCRIBE", destination=destination, id="1", ack="client-individual", **dict(subscribe))
    bodies = [connection.read()[2] for _ in range(at_least)]
    connection.write("SEND", MARKER, destination=destination, persistent="true", **dict(send))
    while MARKER not in bodies:
        bodies.append(connection.read()[2])
    connection.close()
    return sorted(bodies[:-1])


def left_over_amqp(connection, address, at_least):
    """The bodies in a queue: so many for certain, then what comes before a marker."""
    with connection:
        receiver = connection.receiver(address, 20)
        bodies = [receiver.receive(timeout=10).body for _ in range(at_least)]
        connection.send(address, MARKER)
        while MARKER not in bodies:
            bodies.append(receiver.receive(timeout=10).body)
    return sorted(bodies[:-1])


def test_activemq_keeps_cumulative_acknowledgements_in_their_transaction(stomp):
    """And a refused SEND that asks for no receipt makes the COMMIT fail: nothing of it happens."""
    destination = f"/queue/statement.{uuid.uuid4().hex}"
    connection = stomp("activemq")
    for body in "ab":
        connection.confirm("SEND", body, destination=destination, persistent="true")
    connection.write("SUBSCRIBE", destination=destination, id="1", ack="client")
    taken = {body: headers["ack"] for _, headers, body in [connection.read() for _ in "ab"]}
    connection.write("BEGIN", transaction="t")
    connection.write("ACK", id=taken["b"], transaction="t")
    for target in ("/queue/refused.queue", destination):
        connection.write("SEND", "never", destination=target, transaction="t", persistent="true")
    connection.write("COMMIT", transaction="t", receipt="committed")
    answers = [connection.read() for _ in range(2)]
    assert {command for command, *_ in answers} == {"ERROR"}
    assert "committed" in {headers.get("receipt-id") for _, headers, _ in answers}
    connection._socket.close()
    left = left_over_stomp(stomp("activemq"), destination, 2)
    assert left == ["a", "b"]


def test_activemq_over_stomp_loses_a_message_when_another_transaction_commits(stomp, queue):
    """Found: with ``ack:client`` the commit of the second transaction takes along what the first has acknowledged and
    then aborts: "a" is lost. (An acknowledgement means all before it, and the broker does not mind whose they are.)"""
    destination = f"/queue/{queue}"
    two_stomp_transactions(stomp("activemq"), destination, "client")
    assert left_over_stomp(stomp("activemq"), destination, 1) == ["c"]


def test_activemq_over_stomp_keeps_transactions_apart_that_acknowledge_each_message(stomp, queue):
    """Found: with ``ack:client-individual`` the aborted "a" comes again; cumulative ``ack:client`` loses it."""
    destination = f"/queue/{queue}"
    two_stomp_transactions(stomp("activemq"), destination, "client-individual")
    assert left_over_stomp(stomp("activemq"), destination, 2) == ["a", "c"]


@pytest.mark.parametrize("mode", ["client", "client-individual"])
def test_artemis_over_stomp_acknowledges_at_once_whatever_the_transaction(stomp, queue, mode):
    """Found: an ACK with a transaction header is carried out at once; its ABORT brings nothing back, "a" is lost."""
    subscribe = {"subscription_type": "ANYCAST"}
    two_stomp_transactions(stomp("artemis"), queue, mode, ANYCAST, subscribe)
    assert left_over_stomp(stomp("artemis"), queue, 1, ANYCAST, subscribe) == ["c"]


def test_rabbitmq_over_stomp_keeps_transactions_apart(stomp, queue):
    """Found: with ``ack:client-individual`` the aborted "a" comes again. (That both parts of one transaction happen
    together its documentation does not promise: it sends and acknowledges one after the other.)"""
    destination = f"/queue/{queue}"
    two_stomp_transactions(stomp("rabbitmq"), destination, "client-individual")
    assert left_over_stomp(stomp("rabbitmq"), destination, 2) == ["a", "c"]


def two_amqp_transactions(connection, address, *ends):
    """Accept "a" in one transaction and "b" in another of one session, and end them in some order."""
    with connection:
        connection.send(address, *"abc")
        taken = connection.take(connection.receiver(address, 3), 3)
        transactions = {"one": connection.declare(), "two": connection.declare()}
        connection.settle(taken["a"], transactions["one"])
        connection.settle(taken["b"], transactions["two"])
        for name, fail in ends:
            assert connection.discharge(transactions[name], fail=fail) == ACCEPTED


def test_activemq_over_amqp_commits_what_another_transaction_acknowledged(amqp, queue):
    """Found: the commit of the second transaction takes along "a" of the first, whose rollback then brings nothing
    back: "a" is lost."""
    two_amqp_transactions(amqp("activemq"), queue, ("two", False), ("one", True))
    assert left_over_amqp(amqp("activemq"), queue, 1) == ["c"]


def test_activemq_over_amqp_rolls_back_what_another_transaction_commits(amqp, queue):
    """Found: the rollback of the first transaction takes along "b" of the second, whose commit is then accepted and
    does nothing: "b" comes again."""
    two_amqp_transactions(amqp("activemq"), queue, ("one", True), ("two", False))
    assert left_over_amqp(amqp("activemq"), queue, 3) == ["a", "b", "c"]


@pytest.mark.parametrize("broker", ["artemis", "qpid"])
@pytest.mark.parametrize("fails", ["one", "two"])
@pytest.mark.parametrize("first", ["one", "two"])
def test_artemis_and_qpid_take_several_transactions_in_a_session(amqp, queue, broker, fails, first):
    """Found: each has its own fate, whichever ends first."""
    ends = sorted([("one", fails == "one"), ("two", fails == "two")], key=lambda end: end[0] != first)
    two_amqp_transactions(amqp(broker), queue, *ends)
    assert left_over_amqp(amqp(broker), queue, 2) == {"one": ["a", "c"], "two": ["b", "c"]}[fails]


@pytest.mark.parametrize("broker", ["activemq", "artemis"])
@pytest.mark.parametrize(("outcome", "fields"), [(RELEASED, ()), (MODIFIED, (True,)), (REJECTED, ())])
def test_activemq_and_artemis_ignore_every_outcome_but_accepted_in_a_transaction(amqp, queue, broker, outcome, fields):
    """Found: the commit is accepted, but a message that was released, modified or rejected in it stays with the link:
    it is not delivered again, before "d", and comes back only when the link ends."""
    with amqp(broker) as connection:
        connection.send(queue, *"abc")
        receiver = connection.receiver(queue, 3)
        taken = connection.take(receiver, 3)
        transaction = connection.declare()
        connection.settle(taken["a"], transaction)
        connection.settle(taken["b"], transaction, outcome, fields)
        assert connection.discharge(transaction) == ACCEPTED
        connection.send(queue, "d")
        assert receiver.receive(timeout=10).body == "d"
    assert left_over_amqp(amqp(broker), queue, 3) == ["b", "c", "d"]


@pytest.mark.parametrize(("outcome", "fields"), [(RELEASED, ()), (MODIFIED, (True,)), (REJECTED, ())])
def test_qpid_takes_other_outcomes_in_a_transaction(amqp, queue, outcome, fields):
    """Found: the message is delivered again after the commit, before "d"."""
    with amqp("qpid") as connection:
        connection.send(queue, *"abc")
        receiver = connection.receiver(queue, 3)
        taken = connection.take(receiver, 3)
        transaction = connection.declare()
        connection.settle(taken["b"], transaction, outcome, fields)
        assert connection.discharge(transaction) == ACCEPTED
        connection.send(queue, "d")
        assert receiver.receive(timeout=10).body == "b"


@pytest.mark.parametrize("pair", ["rabbitmq-amqp", "rabbitmq4-amqp"])
def test_rabbitmq_ends_the_session_that_asks_for_transactions(broker_url, pair):
    """Found: it answers the attach of a coordinator with the end of the session, amqp:not-implemented."""
    connection = RawAMQP(broker_url(pair))
    session = connection.attach_coordinator().session
    connection.connection.wait(lambda: session.state & Endpoint.REMOTE_CLOSED, msg="the end of the session")
    assert session.remote_condition.name == "amqp:not-implemented"
    connection.connection.conn.close()


SECONDS = 10


def connected(broker_url, broker):
    return RawAMQP(broker_url(f"{broker}-amqp"), CAPABILITIES[broker])


def send_two_and_one_that_is_refused(connection, address, *, settled):
    """Write them and the end of their transaction together; the second names no destination on the link to any."""
    own, relay = connection.senders(address)
    transaction = connection.declare()
    posted = [
        connection.post(link, body, transaction, settled=settled)
        for link, body in [(own, "a"), (relay, "b"), (own, "c")]
    ]
    return posted, connection.discharge(transaction)


@pytest.mark.parametrize("broker", ["artemis", "activemq"])
def test_artemis_and_activemq_commit_what_is_left(broker_url, broker, queue):
    """Found: "b" is rejected, the commit accepted all the same, and "a" and "c" are there."""
    with connected(broker_url, broker) as connection:
        (_, refused, _), state = send_two_and_one_that_is_refused(connection, queue, settled=False)
        assert (refused.remote_state, state) == (REJECTED, ACCEPTED)
    assert left_over_amqp(connected(broker_url, broker), queue, 2) == ["a", "c"]


@pytest.mark.parametrize("broker", ["artemis", "activemq"])
def test_artemis_and_activemq_commit_without_what_was_settled(broker_url, broker, queue):
    """Found: "b" is not there, and nothing tells it: so each message is to be answered."""
    with connected(broker_url, broker) as connection:
        _, state = send_two_and_one_that_is_refused(connection, queue, settled=True)
        assert state == ACCEPTED
    assert left_over_amqp(connected(broker_url, broker), queue, 2) == ["a", "c"]


@pytest.mark.parametrize("settled", [False, True])
def test_qpid_rolls_all_of_it_back(broker_url, queue, settled):
    """Found: it ends the link to any destination, then that to the coordinator: amqp:transaction:rollback."""
    with connected(broker_url, "qpid") as connection, pytest.raises(LinkDetached, match="amqp:not-found"):
        send_two_and_one_that_is_refused(connection, queue, settled=settled)
    assert left_over_amqp(connected(broker_url, "qpid"), queue, 0) == []


@pytest.fixture
def to_qpid(broker_url):
    """A connection to Broker-J."""
    connection = connect(ConnectionSettings(broker_url("qpid-amqp")))
    yield connection
    connection.close()


def make_queue(connection, name, **attributes):
    """Have Broker-J make a queue."""
    request = MapMessage({"name": name, "object-path": name, **attributes})
    request.properties.update({"type": "org.apache.qpid.Queue", "operation": "CREATE"})
    answer = ManagementClient(connection, "$management", SECONDS).request(request)
    assert answer.properties["statusCode"] == 201


def test_a_unit_that_overfills_a_queue_of_qpid_is_rolled_back(to_qpid, queue):
    """Most of it is settled when it is sent; the queue takes some of that, before it refuses one."""
    make_queue(to_qpid, queue, maximumQueueDepthMessages=3, overflowPolicy="REJECT")
    for bodies, fits in (("ab", True), ("cdefg", False), ("h", True)):
        unit = to_qpid.unit(atomic=True)
        for body in bodies:
            unit.send(TextMessage(body), Queue(queue))
        if fits:
            unit.commit()
            continue
        with pytest.raises(TransactionRolledBackError, match="amqp:resource-limit-exceeded"):
            unit.commit()
    consumer = to_qpid.consumer(Queue(queue), window=10)
    assert [consumer.receive(1, SECONDS)[0].message.body for _ in "abh"] == ["a", "b", "h"]
    assert not consumer.receive(1, 0)


COUNT, ROUNDS = 40, 5
SIZES = [0, 0, 1000, 100_000]


def received(session, queue):
    consumer = session.create_consumer(queue)
    return list(iter(lambda: consumer.receive(timeout=0), None))


def looked_at(session, queue):
    return list(session.create_browser(queue))


@pytest.mark.parametrize("take", [received, looked_at])
def test_all_are_found(broker_url, take):
    sizes = random.Random(take.__name__)
    factory = ConnectionFactory(f"{broker_url('artemis-amqp')}?reply_timeout=10")
    for _ in range(ROUNDS):
        queue = Queue(f"frames.{uuid.uuid4()}")
        with factory.create_connection() as connection, connection.create_session() as session:
            producer = session.create_producer(queue)
            for number in range(COUNT):
                producer.send(session.create_text_message(f"{number} {'x' * sizes.choice(SIZES)}"))
            found = take(session, queue)
            assert [int(message.body.split()[0]) for message in found] == list(range(COUNT))
            received(session, queue)
