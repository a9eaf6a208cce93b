"""RabbitMQ 4's management: what it answers is understood, or is an error of ours, and the next question is answered."""

import pytest
from amqp_peer import Broker
from amqp_peer.encoding import Described, Symbol, ULong, encode
from amqp_peer.performatives import RECEIVER, Open, Transfer
from proton import Message as WireMessage

from jmsjca.destinations import Queue
from jmsjca.errors import IllegalStateError, InvalidDestinationError, JMSError, ResourceAllocationError
from jmsjca.spi import Depth

_PROPERTIES, _VALUE = 0x73, 0x77
NODE = "/management"
QUEUE = Queue("orders ü/%")
PATH = "/queues/orders%20%C3%BC%2F%25"
FOUND = {"message_count": 3, "consumer_count": 0, "type": "quorum", "leader": "rabbit@one", "arguments": {}}


def answer(request, status, body):
    fields = [None, None, None, str(status), None, request.id]
    return encode(Described(ULong(_PROPERTIES), fields)) + encode(Described(ULong(_VALUE), body))


class Manager:
    """A RabbitMQ 4 whose management answers each request by a function of it, in turn; the last one stays.

    Attributes:
        asked: The methods and paths of the requests.
    """

    def __init__(self, stage, *answers):
        self.answers, self.asked = list(answers), []
        self._broker = Broker("RabbitMQ 4")  # whose flow is not that of 3.x
        self._broker.instead.update({Open: self._open, Transfer: self._transfer})
        self.stage = stage(self._broker)

    def connect(self, options=""):
        return self.stage.connect(options)

    def _open(self, service, frame):
        told = {Symbol("product"): "RabbitMQ", Symbol("version"): "4.0.5"}
        offered = [Symbol("ANONYMOUS-RELAY"), Symbol("LINK_PAIR_V1_0")]
        service.agree(frame, properties=told, offered_capabilities=offered)

    def _transfer(self, service, frame):
        if service.links[frame.channel, frame.body.handle].attach.target.address != NODE:
            service.carry_out(frame)
            return
        request = WireMessage()
        request.decode(frame.payload)
        self.asked.append((request.subject, request.address))
        reply = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if reply is None:
            self.stage.peer.leave_unanswered()
        else:
            self._answer(service, reply(request))

    @staticmethod
    def _answer(service, payload):
        """Send an answer settled, as the client asks."""
        [link] = [
            each
            for each in service.links.values()
            if each.attach.role == RECEIVER and each.attach.source.address == NODE
        ]
        number = next(service._numbers[link.channel])
        told = {"handle": link.handle, "delivery_id": number, "delivery_tag": str(number).encode(), "settled": True}
        service.line.write(Transfer(message_format=0, more=False, **told), link.channel, payload)


def told(status, body=None):
    return lambda request: answer(request, status, body)


def test_a_queue_that_is_there_is_used(stage):
    manager = Manager(stage, told(200, FOUND))
    manager.connect().check(QUEUE)
    assert manager.asked[0] == ("GET", PATH)
    assert {method for method, _ in manager.asked} == {"GET"}


def test_a_queue_that_is_not_there_is_declared(stage):
    manager = Manager(stage, told(404), told(201, FOUND))
    manager.connect().check(QUEUE)
    assert manager.asked[:2] == [("GET", PATH), ("PUT", PATH)]


def test_a_queue_that_another_client_declares_meanwhile_is_used(stage):
    manager = Manager(stage, told(404), told(500, "declared twice"), told(200, FOUND))
    manager.connect().check(QUEUE)
    assert manager.asked[:3] == [("GET", PATH), ("PUT", PATH), ("GET", PATH)]


def test_a_queue_without_a_leader_is_waited_for(stage):
    """It would reject messages."""
    manager = Manager(stage, told(200, {**FOUND, "leader": ""}), told(200, {**FOUND, "leader": ""}), told(200, FOUND))
    manager.connect().check(QUEUE)
    assert manager.asked == [("GET", PATH)] * 3


REFUSALS = {
    "a name of the broker's": (403, "access refused, starts with amq.", InvalidDestinationError),
    "too many queues": (403, "limit of queues reached", ResourceAllocationError),
    "other arguments": (409, "inequivalent arg", IllegalStateError),
    "anything else": (500, None, JMSError),
    "no status of HTTP": (-1, "-1", JMSError),
}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_what_is_refused_has_its_error_with_the_brokers_words(stage, refusal):
    status, text, error = REFUSALS[refusal]
    manager = Manager(stage, told(404), told(status, text), told(404), told(201, FOUND))
    connection = manager.connect()
    with pytest.raises(error) as caught:
        connection.check(QUEUE)
    assert type(caught.value) is error
    assert (text or str(status)) in str(caught.value)
    connection.check(QUEUE)  # the next one is answered


UNREADABLE = {
    "no message": lambda request: b"\xff",
    "nothing": lambda request: b"",
    "the answer to something else": lambda request: answer(WireMessage(id="other"), 200, FOUND),
    "a status that is no number": told("OK", FOUND),
    "a list for a map": told(200, [1]),
    "text for a map": told(200, "found"),
}


@pytest.mark.parametrize("reply", UNREADABLE)
def test_what_cannot_be_read_is_an_error_and_the_next_question_is_answered(stage, reply):
    manager = Manager(stage, UNREADABLE[reply], told(200, FOUND))
    connection = manager.connect()
    with pytest.raises(JMSError):
        connection.admin().depth(QUEUE)
    assert connection.admin().depth(QUEUE) == Depth(3, 0, 0)


def test_silence_ends_with_an_error_that_names_the_node(stage):
    manager = Manager(stage, None)
    with pytest.raises(JMSError, match=NODE):
        manager.connect("reply_timeout=1").admin().depth(QUEUE)


@pytest.mark.parametrize(
    ("reply", "outcome"), [(told(200, {"message_count": 7}), 7), (told(200, {"message_count": "x"}), JMSError)]
)
def test_purging_tells_how_many(stage, reply, outcome):
    admin = Manager(stage, told(200, FOUND), reply).connect().admin()
    if outcome is JMSError:
        with pytest.raises(JMSError):
            admin.purge(QUEUE)
    else:
        assert admin.purge(QUEUE) == outcome


def test_removing_asks_first(stage):
    manager = Manager(stage, told(200, {**FOUND, "consumer_count": 1}))
    admin = manager.connect().admin()
    with pytest.raises(IllegalStateError, match="consumers"):
        admin.remove(QUEUE)
    manager.answers = [told(200, FOUND), told(200, {"message_count": 3})]
    admin.remove(QUEUE)
    assert manager.asked == [("GET", PATH), ("GET", PATH), ("DELETE", PATH)]
