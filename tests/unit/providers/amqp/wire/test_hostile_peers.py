"""Unrequested, oversized, endless, nested and malformed frames: memory is bounded, the error is clear."""

import logging
import struct
from contextlib import suppress

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.encoding import Described, Symbol, ULong, encode
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

from jmsjca.config import Limits
from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, JMSError, MessageFormatError, ResourceAllocationError
from tests.unit.providers.amqp.wire.cut_account import encoded
from tests.unit.providers.amqp.wire.malformed_frames import VECTORS
from tests.unit.providers.amqp.wire.memory_growth import MIB, growth_below

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


LIMIT = 256 * 1024


def of_size(size):
    """A message in one frame of so many bytes."""
    transfer = Transfer(handle=0, delivery_id=0, delivery_tag=b"0", message_format=0)
    around = len(frame(transfer, payload=encoded("")))
    return frame(transfer, payload=encoded("x" * (size - around)))


def test_a_frame_of_the_limit_is_taken(stage):
    data = of_size(LIMIT)
    assert len(data) == LIMIT
    connection = stage(script(RECEIVING, send(data))).connect()
    (delivery,) = connection.consumer(Queue("q")).receive(1, SECONDS)
    assert set(delivery.message.body) == {"x"}


@pytest.mark.parametrize("size", [LIMIT + 1, 2**31, 2**32 - 1])
def test_a_frame_above_the_limit_is_refused_though_little_of_it_came(stage, size):
    here = stage(script(RECEIVING, send(size.to_bytes(4, "big") + of_size(LIMIT)[4:1000]), silence))
    consumer = here.connect("heartbeat=0").consumer(Queue("q"))
    with pytest.raises(ConnectionLostError):
        consumer.receive(1, SECONDS)
    assert here.lost.wait(SECONDS)


def test_a_frame_just_above_the_limit_is_refused_though_all_of_it_came(stage):
    here = stage(script(RECEIVING, send(of_size(LIMIT + 1)), silence))
    consumer = here.connect("heartbeat=0").consumer(Queue("q"))
    with pytest.raises(ConnectionLostError):
        consumer.receive(1, SECONDS)


GOOD = frame(Transfer(handle=0, delivery_id=0, delivery_tag=b"good", message_format=0), payload=encoded("good"))


def take_all_raw(consumer):
    while consumer.receive(1, SECONDS):
        pass


def nothing_failed(caplog):
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    return not [record for record in told if "asked for transactions" not in record.msg]


@pytest.mark.parametrize("vector", VECTORS)
def test_to_a_receiver(stage, caplog, vector):
    here = stage(script(OPEN, expect(Attach), reply(), expect(Flow), send(VECTORS[vector], GOOD), drop))
    consumer = here.connect().consumer(Queue("q"))
    with pytest.raises(JMSError) as told:
        take_all_raw(consumer)
    assert len(str(told.value)) < 1000
    assert here.lost.wait(SECONDS)
    assert len(here.told) == 1
    assert nothing_failed(caplog), caplog.text


OPENS = [name for name in VECTORS if " field " not in name or name.startswith("Open")]


@pytest.mark.parametrize("vector", OPENS)
def test_instead_of_an_open(stage, caplog, vector):
    here = stage(script(LOGIN, expect(Open), send(VECTORS[vector]), drop))
    with suppress(JMSError):
        here.connect()
    assert nothing_failed(caplog), caplog.text


DEPTH = 100_000
POISON_QUEUE = Queue("in")


def lists():
    """A list in a list in a list, of exact sizes and counts."""
    data = b"\x45"
    parts = [struct.pack(">BII", 0xD0, 9 * depth + len(data) + 4, 1) for depth in range(DEPTH - 1, -1, -1)]
    return b"".join(parts) + data


def maps():
    parts = [struct.pack(">BII", 0xD1, 10 * depth + 6, 2) + b"\x43" for depth in range(DEPTH - 1, -1, -1)]
    return b"".join(parts) + b"\x40"


def descriptors():
    return b"\0" * DEPTH + b"\x43" * (DEPTH + 1)


def values():
    """A described value as the value of a described value."""
    return b"\0\x43" * DEPTH + b"\x40"


def arrays():
    parts = [struct.pack(">BIIB", 0xF0, 10 * depth + 5, 1, 0xF0) for depth in range(DEPTH, 0, -1)]
    return b"".join(parts)[:-1] + b"\x40"


DEEP = {make.__name__: make() for make in (lists, maps, descriptors, values, arrays)}
SECTIONS = {"header": 0x70, "annotations": 0x72, "properties": 0x73, "application properties": 0x74, "body": 0x77}


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("shape", DEEP)
def test_values_that_are_nested_too_deep_spoil_only_their_message(stage, shape, section):
    broker = Broker()
    deep = b"\0\x53" + bytes([SECTIONS[section]]) + DEEP[shape]
    poison = encode(Described(ULong(0x70), [True])) + deep if section == "body" else deep + encoded("x")
    with growth_below(64 * MIB):
        here = stage(broker)
        connection = here.connect(limits=Limits(message_bytes=4 * MIB))
        for payload in (encoded("before"), poison, encoded("behind")):
            broker.store.put("in", payload)
        consumer = connection.consumer(POISON_QUEUE, window=3)
        taken = [delivery for _ in range(3) for delivery in consumer.receive(1, SECONDS)]
        assert taken[0].message.body == "before"
        assert taken[2].message.body == "behind"
        _look_at(taken[1], readable=section == "header")  # what a broker says of its deliveries, not the sender
        unit = connection.unit()
        unit.take(taken)
        unit.commit()
        assert not here.told


def _look_at(poison, *, readable):
    """What nobody reads does no harm; what is read says that it cannot be."""
    assert poison.count >= 1
    assert poison.raw
    assert poison.redelivered in {True, False}
    if readable:
        with suppress(MessageFormatError):
            _read_all(poison)
        return
    with pytest.raises(MessageFormatError) as told:
        _read_all(poison)
    assert len(str(told.value)) < 1000


def _read_all(delivery):
    message = delivery.message
    for look in (message.get_property_names, lambda: message.body, lambda: message.type, lambda: message.reply_to):
        look()
