"""A management reply is accepted only for its request."""

from itertools import count

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.encoding import Described, ULong, encode
from amqp_peer.performatives import RECEIVER, Attach, Detach, Error, Target, Transfer
from proton import Message as WireMessage

from jmsjca import Limits
from jmsjca.errors import JMSSecurityError, ResourceAllocationError
from jmsjca.messages import Message
from jmsjca.providers.amqp.admin import ManagementClient
from tests.unit.providers.amqp.wire.cut_account import encoded

_PROPERTIES = 0x73
_REPLY_TO, _CORRELATION = 4, 5
REFUSAL = Error(condition="amqp:unauthorized-access", description="no")


def answer(correlation, body):
    return encode(Described(ULong(_PROPERTIES), [None] * _CORRELATION + [correlation])) + encoded(body)


class Manager:
    """A broker whose management gives the answers that a test wants, made from the correlation of the question."""

    def __init__(self, stage, *answers, limits=None):
        self.answers, self.queues = answers, count()
        self.broker = broker = Broker()
        broker.instead.update({Attach: self.name, Transfer: self.reply})
        self.requests = ManagementClient(stage(broker).connect(limits=limits), "management", SECONDS)

    def name(self, service, frame):
        if isinstance(frame.body.target, Target) and frame.body.target.dynamic:
            frame.body.target.fields["address"] = f"replies {next(self.queues)}"
        service.carry_out(frame)

    def reply(self, service, frame):
        asked = WireMessage()
        asked.decode(frame.payload)
        assert asked.reply_to.startswith("replies")
        for each in self.answers:
            service.store.put(asked.reply_to, each(asked.correlation_id))
        service.carry_out(frame)


def own(body):
    return lambda correlation: answer(correlation, body)


def test_a_queue_whose_answers_nobody_may_take_is_not_left_behind(stage):
    """A program that asks again and again would have a link and a session more each time."""
    manager = Manager(stage)

    def refuse(service, frame):
        if frame.body.role == RECEIVER:
            service.agree(frame, source=None)
            service.line.write(Detach(handle=frame.body.handle, closed=True, error=REFUSAL), frame.channel)
        else:
            manager.name(service, frame)

    manager.broker.instead[Attach] = refuse
    for _ in range(3):
        with pytest.raises(JMSSecurityError):
            manager.requests.request(Message())
    assert manager.broker.seen[Detach] == 2 * 3  # an answer to a refusal each, and the link that keeps a queue


OTHERS = {
    "of another question": lambda correlation: answer("another", "wrong"),
    "of a number": lambda correlation: answer(ULong(1), "wrong"),
    "of no question": lambda correlation: encoded("wrong"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_an_answer_to_something_else_is_passed_over(stage, other):
    manager = Manager(stage, OTHERS[other], own("right"))
    assert manager.requests.request(Message()).body == "right"


def test_an_answer_that_comes_too_late_is_not_that_of_the_next_question(stage):
    manager = Manager(stage, own("first"), own("first again"))
    assert [manager.requests.request(Message()).body for _ in range(2)] == ["first"] * 2


def test_an_answer_that_is_too_large_spoils_no_other(stage):
    """It ends the consumer of the answers, and stays in its queue."""
    manager = Manager(stage, own("x" * 10_000), limits=Limits(message_bytes=1000))
    with pytest.raises(ResourceAllocationError, match="more than 1000 bytes"):
        manager.requests.request(Message())
    manager.answers = [own("right")]
    assert manager.requests.request(Message()).body == "right"
    assert manager.broker.seen[Detach] == 2  # its consumer, and the link that keeps the queue
