"""Requests to a broker's management whose fate is unknown."""

import pytest

from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, TransactionInDoubtError
from jmsjca.messages import Message
from jmsjca.providers.amqp.requests import Requests


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
    with pytest.raises(ConnectionLostError, match="may have done it: Some messages may have been sent") as told:
        Requests(Cut(), "management", 1.0).ask(Message())
    assert isinstance(told.value.__cause__, TransactionInDoubtError)
