"""What brokers do with a message that they refuse in a transaction: why the end of one waits for every answer.

They are told in docs/capabilities.md, as those of `test_statements`.
"""

import uuid

import pytest
from proton.utils import LinkDetached
from raw_amqp import ACCEPTED, REJECTED, RawAMQP

from jmsjca import MapMessage, Queue, TextMessage
from jmsjca.errors import TransactionRolledBackError
from jmsjca.providers.amqp.admin import ManagementClient
from jmsjca.reconnection import ConnectionSettings, connect
from tests.brokers.test_statements import CAPABILITIES, left_over_amqp

SECONDS = 10


@pytest.fixture
def queue():
    return f"statement.{uuid.uuid4().hex}"


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
