"""What brokers do with a message that they refuse in a transaction: why the end of one waits for every answer.

They are told in docs/capabilities.md, as those of `test_statements`.
"""

import uuid

import pytest
from proton.utils import LinkDetached
from raw_amqp import ACCEPTED, REJECTED, RawAMQP

from tests.brokers.test_statements import CAPABILITIES, left_over_amqp

QUEUE = f"statement.{uuid.uuid4().hex}"


def connected(broker_url, broker):
    return RawAMQP(broker_url(f"{broker}-amqp"), CAPABILITIES[broker])


def send_two_and_one_that_is_refused(connection, address):
    """Write them and the end of their transaction together; the second names no destination on the link to any."""
    own, relay = connection.senders(address)
    transaction = connection.declare()
    posted = [connection.post(link, body, transaction) for link, body in [(own, "a"), (relay, "b"), (own, "c")]]
    return posted, connection.discharge(transaction)


@pytest.mark.parametrize("broker", ["artemis", "activemq"])
def test_artemis_and_activemq_commit_what_is_left(broker_url, broker):
    """Found: "b" is rejected, the commit accepted all the same, and "a" and "c" are there."""
    with connected(broker_url, broker) as connection:
        (_, refused, _), state = send_two_and_one_that_is_refused(connection, QUEUE)
        assert (refused.remote_state, state) == (REJECTED, ACCEPTED)
    assert left_over_amqp(connected(broker_url, broker), QUEUE, 2) == ["a", "c"]


def test_qpid_rolls_all_of_it_back(broker_url):
    """Found: it ends the link to any destination, then that to the coordinator: amqp:transaction:rollback."""
    with connected(broker_url, "qpid") as connection, pytest.raises(LinkDetached, match="amqp:not-found"):
        send_two_and_one_that_is_refused(connection, QUEUE)
    assert left_over_amqp(connected(broker_url, "qpid"), QUEUE, 0) == []
