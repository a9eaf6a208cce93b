"""Requests to a broker's management whose fate is unknown."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from proton import Message as WireMessage

from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, JMSError, TransactionInDoubtError
from jmsjca.messages import Message
from jmsjca.providers.amqp.admin import ManagementClient


class Cut:
    """A connection that breaks when a request has been sent."""

    def temporary(self, kind):
        return Queue("answers")

    def consumer(self, source):
        return None

    def unit(self, *, atomic):
        return self

    def send(self, message, to):
        assert to == Queue("management")

    def commit(self):
        raise TransactionInDoubtError("Some messages may have been sent.")


def test_a_request_without_an_answer_may_have_been_done():
    with pytest.raises(ConnectionLostError, match="may have performed: Some messages may have been sent") as told:
        ManagementClient(Cut(), "management", 1.0).request(Message())
    assert isinstance(told.value.__cause__, TransactionInDoubtError)


class Garbling(Cut):
    """A connection over which bytes come that may be no message, and nothing else."""

    def __init__(self, encoded):
        self.encoded, self._left = encoded, [self]

    def consumer(self, source):
        return self

    def receive(self, limit, timeout):
        return [self._left.pop()] if self._left else []

    def take(self, deliveries):
        assert deliveries == [self]

    def commit(self):
        pass


@given(st.binary())
@example(b"x")
@example(bytes(WireMessage(body=None, correlation_id=None, properties={"a": 1}).encode())[:-1])
def test_an_answer_that_is_no_message_is_told(encoded):
    with pytest.raises(JMSError):
        ManagementClient(Garbling(encoded), "management", 1.0).request(Message())
