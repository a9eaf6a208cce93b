"""More than was asked for, than fits or than ends: memory stays bounded, the error says what came, others live."""

import pytest
from amqp_peer import SECONDS
from amqp_peer.frames import frame
from amqp_peer.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    Error,
    Flow,
    Open,
    Released,
    Transfer,
)
from amqp_peer.script import LOGIN, OPEN, drop, expect, reply, script, send, silence
from amqp_peer.values import Described, Symbol, ULong, encode

from jmsjca.config import Limits
from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, JMSError, ResourceAllocationError
from tests.unit.amqp.wire.account import encoded
from tests.unit.amqp.wire.memory import MIB, growth_below

QUEUE = Queue("q")
RECEIVING = (OPEN, expect(Attach), reply(), expect(Flow))
SMALL = Limits(message_bytes=MIB, prefetch_bytes=MIB)
FRAME = bytes(60_000)
_APPLICATION_PROPERTIES = 0x74


def transfer(number, payload=b"", **fields):
    body = Transfer(handle=0, delivery_id=number, delivery_tag=str(number).encode(), message_format=0, **fields)
    return frame(body, payload=payload)


def more(payload):
    """The next part of a message that goes on."""
    return frame(Transfer(handle=0, more=True), payload=payload)


def refused(condition):
    return expect(Detach(closed=True, error=Error(condition=condition)))


def take_all(consumer):
    while True:
        consumer.receive(1, SECONDS)


def test_a_message_of_200_mib_is_stopped_while_it_arrives(stage):
    parts = send(transfer(0, FRAME, more=True)), send(more(FRAME), times=200 * MIB // len(FRAME))
    given_back = expect(Disposition(first=0, state=Released))
    here = stage(script(RECEIVING, parts, given_back, refused("amqp:link:message-size-exceeded"), reply()))
    with growth_below(17 * MIB):
        consumer = here.connect(limits=SMALL).consumer(QUEUE)
        with pytest.raises(ResourceAllocationError, match="more than 1048576 bytes came from q; raise"):
            consumer.receive(1, SECONDS)
        assert not here.told  # the connection lives
        here.close()


def test_a_message_in_a_million_parts_is_stopped_as_well(stage):
    parts = send(transfer(0, b"\0", more=True)), send(more(b"\0") * 1000, times=60)
    limits = Limits(message_bytes=50_000)
    here = stage(script(RECEIVING, parts, refused("amqp:link:message-size-exceeded"), reply()))
    with growth_below(16 * MIB):
        with pytest.raises(ResourceAllocationError, match="50000 bytes"):
            here.connect(limits=limits).consumer(QUEUE).receive(1, SECONDS)
        here.close()


def test_a_message_that_never_ends_holds_nobody_up(stage):
    """A broker may take its time; the caller has its own."""
    parts = send(transfer(0, b"x", more=True)), send(more(b"") * 1000, times=50)
    other = (expect(Attach), reply(), expect(Flow))
    here = stage(script(RECEIVING, parts, other))
    with growth_below(16 * MIB):
        connection = here.connect()
        consumer = connection.consumer(QUEUE, window=1)
        assert not consumer.receive(1, 0.01)
        connection.consumer(Queue("other"))
        here.close()


def test_a_message_that_is_taken_back_again_and_again_takes_no_room(stage):
    aborted = b"".join(
        transfer(n, FRAME[:1000], more=True) + frame(Transfer(handle=0, aborted=True)) for n in range(1000)
    )
    here = stage(script(RECEIVING, send(aborted), send(transfer(1000, encoded("x")))))
    with growth_below(24 * MIB):
        assert here.connect().consumer(QUEUE, window=1).receive(1, SECONDS)[0].message.body == "x"
        here.close()


@pytest.mark.parametrize("settled", [True, False])
def test_more_messages_than_were_asked_for(stage, settled):
    messages = b"".join(transfer(n, encoded("x"), settled=settled) for n in range(500))
    here = stage(script(RECEIVING, send(messages), refused("amqp:link:transfer-limit-exceeded"), reply()))
    with growth_below(24 * MIB):
        consumer = here.connect().consumer(QUEUE, window=10)
        with pytest.raises(JMSError, match="More messages than requested came from q"):
            take_all(consumer)
        here.close()


@pytest.mark.parametrize(("product", "settled"), [("apache-activemq-artemis", True), ("RabbitMQ", False)])
def test_messages_without_end(stage, product, settled):
    """RabbitMQ may send some more than it should; nobody may go on after the link was ended."""
    mark = b"\xab\xcd\xef\1"
    numbered = Transfer(handle=0, delivery_id=int.from_bytes(mark, "big"), delivery_tag=mark, settled=settled)
    like = frame(numbered, payload=encoded("x"))
    messages = b"".join(like.replace(mark, number.to_bytes(4, "big")) for number in range(100_000))
    opened = (LOGIN, expect(Open), reply(properties={Symbol("product"): product}))
    here = stage(script(opened, expect(Attach), reply(), expect(Flow), send(messages), silence))
    with growth_below(48 * MIB):
        consumer = here.connect().consumer(QUEUE, window=10)
        with pytest.raises(JMSError, match=r"More messages than requested|keeps sending"):
            take_all(consumer)
        assert here.lost.wait(SECONDS)
        assert "keeps sending" in str(here.told[0])


def test_empty_frames_without_end_are_only_signs_of_life(stage):
    here = stage(script(RECEIVING, send(frame(None) * 1000, times=500), send(transfer(0, encoded("x")))))
    with growth_below(16 * MIB):
        assert here.connect().consumer(QUEUE).receive(1, SECONDS)[0].message.body == "x"
        here.close()


def own_session(channel):
    return frame(Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1), channel)


def own_link(handle, channel=0):
    return frame(Attach(name=f"n{handle}", handle=handle, role=False, initial_delivery_count=0), channel)


OWN = {
    "sessions": b"".join(map(own_session, range(1, 5000))),
    "links": b"".join(map(own_link, range(1, 5000))),
    "a link in an own session": own_session(1) + own_link(0, channel=1),
}


@pytest.mark.parametrize("what", OWN)
def test_a_broker_that_opens_what_nobody_asked_for_is_left(stage, caplog, what):
    here = stage(script(RECEIVING, send(OWN[what]), drop))
    with growth_below(24 * MIB), pytest.raises(ConnectionLostError, match="on its own initiative"):
        here.connect().consumer(QUEUE).receive(1, SECONDS)
    assert not caplog.records


def test_flows_and_dispositions_without_end(stage):
    flow = frame(Flow(next_incoming_id=0, incoming_window=1, next_outgoing_id=0, outgoing_window=1, handle=0))
    settlement = frame(Disposition(role=False, first=0, last=1000, settled=True, state=Accepted()))
    here = stage(script(RECEIVING, send((flow + settlement) * 500, times=40), send(transfer(0, encoded("x")))))
    with growth_below(16 * MIB):
        assert here.connect().consumer(QUEUE, window=5).receive(1, SECONDS)
        here.close()


def test_endless_headers_count_as_the_message(stage):
    """A million properties are a message of so many bytes; what is larger than the limit is not taken."""
    properties = {f"property {n}": n for n in range(200_000)}
    payload = encode(Described(ULong(_APPLICATION_PROPERTIES), properties)) + encoded("x")
    pieces = [payload[at : at + 60_000] for at in range(0, len(payload), 60_000)]
    parts = send(transfer(0, pieces[0], more=True) + b"".join(map(more, pieces[1:])))
    here = stage(script(RECEIVING, parts, refused("amqp:link:message-size-exceeded"), reply()))
    with growth_below(24 * MIB), pytest.raises(ResourceAllocationError):
        here.connect(limits=SMALL).consumer(QUEUE).receive(1, SECONDS)


def test_a_peer_that_reads_nothing_does_not_hold_up_the_close(stage):
    def deaf(line, peer):
        script(OPEN, expect(Close))(line, peer)

    here = stage(deaf)
    here.connect().close(timeout=0)
