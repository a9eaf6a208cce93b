"""Incoming transfers: too large, aborted, undecodable, unrequested; and the byte budget of the prefetch."""

import threading
from collections import deque
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proton import Message, symbol

from jmsjca.config import Limits
from jmsjca.destinations import Queue
from jmsjca.errors import IllegalStateError, MessageFormatError, ResourceAllocationError
from jmsjca.providers.amqp.links.credit import ByteBudget
from tests.unit.providers.amqp.raw_frames import transfer
from tests.unit.providers.amqp.scripted_broker import SECONDS

QUEUE = Queue("q")
PIECE = b"\0\x53\x75\xb0\x7f\xff\xff\xff" + bytes(60_000)
MEBIBYTE = 1 << 20


def _nested(depth):
    """A value of lists in lists, as `tests/support/poisoning.py` has it."""
    value = b"\x45"
    for _ in range(depth):
        value = b"\xd0" + (len(value) + 4).to_bytes(4, "big") + (1).to_bytes(4, "big") + value
    return b"\0\x53\x70\xc0\4\3\x41\x40\x40" + b"\0\x53\x77" + value


def _flooding(peer, megabytes, done):
    """A reaction to the first credit: one message that does not end, whatever the client says to it."""

    def flood(event):
        peer.reactions["flow"] = lambda _: None
        for _ in range(megabytes * MEBIBYTE // len(PIECE)):
            peer.write(transfer(0, PIECE, more=True, channel=event.session.channel))
        done.set()

    return flood


def _resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_message_over_the_limit_is_stopped_while_it_arrives(line):
    line, done = line(), threading.Event()
    line.open(limits=Limits(message_bytes=MEBIBYTE))
    line.peer.reactions["flow"] = _flooding(line.peer, 5, done)
    consumer = line.connection.consumer(QUEUE)
    with pytest.raises(ResourceAllocationError, match="raise Limits"):
        consumer.receive(1, None)
    assert done.wait(SECONDS)
    line.peer.wait_for("detach")
    line.connection.check(QUEUE)  # the connection lives on
    assert not line.told


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell the memory in use")
def test_message_without_end_takes_no_memory(line):
    line, done = line(), threading.Event()
    line.open(limits=Limits(message_bytes=MEBIBYTE))
    line.peer.reactions["flow"] = _flooding(line.peer, 200, done)
    before = _resident()
    consumer = line.connection.consumer(QUEUE)
    with pytest.raises(ResourceAllocationError):
        consumer.receive(1, None)
    assert done.wait(SECONDS)
    assert _resident() - before < 17 * MEBIBYTE


def test_aborted_message_is_none(line):
    line = line()
    line.open()

    def abort(event):
        channel = event.session.channel
        pieces = [transfer(0, b"half", more=True, channel=channel), transfer(0, b"", aborted=True, channel=channel)]
        line.peer.write(b"".join(pieces) + transfer(1, Message(body="whole").encode(), channel=channel))
        line.peer.reactions["flow"] = lambda _: None

    line.peer.reactions["flow"] = abort
    [delivery] = line.connection.consumer(QUEUE).receive(1, None)
    assert delivery.message.body == "whole"


def test_message_in_pieces_is_one(line):
    line = line()
    line.open()
    whole = Message(body="long " * 100).encode()

    def send(event):
        line.peer.reactions["flow"] = lambda _: None
        for at in range(0, len(whole), 7):
            line.peer.write(transfer(0, whole[at : at + 7], more=at + 7 < len(whole), channel=event.session.channel))

    line.peer.reactions["flow"] = send
    [delivery] = line.connection.consumer(QUEUE).receive(1, None)
    assert delivery.message.body == "long " * 100


@pytest.mark.parametrize(
    "body",
    [
        _nested(3_000),
        b"no AMQP at all",
        b"\0\x53\x70\xc0\4\3\x41\x40\x40" + b"\0\x53\x77\xa1\2\xff\xfe",
        b"\0\x53\x70\xc0\4\3\x41\x40\x40" + b"\0\x53\x77\xb1\xff\xff\xff\xff",
        Message(body="hello").encode()[:-1],
        Message(body="hello").encode() + b"!",
        b"\0\x53\x77\x3f",
        b"\0" * 50_000,
    ],
    ids=["nested", "noise", "no text", "length", "cut off", "too long", "no type", "descriptors"],
)
@pytest.mark.parametrize("position", [0, 1, 2])
def test_poison_raises_where_it_is_looked_at(line, body, position):
    line = line()
    line.open()
    encoded = [Message(body=str(n)).encode() for n in range(2)]
    encoded.insert(position, body)
    line.peer.stock.extend(encoded)
    consumer = line.connection.consumer(QUEUE)
    got = []
    while len(got) < 3:
        got += consumer.receive(3, None)
    poison = got.pop(position)
    with pytest.raises(MessageFormatError):
        poison.message  # noqa: B018
    assert (poison.raw, poison.count, poison.redelivered) == (body, 1, False)
    assert [d.message.body for d in got] == ["0", "1"]
    unit = line.connection.unit()
    unit.take([poison])
    unit.commit()


def test_poison_is_counted(line):
    line = line()
    line.open()
    body = _nested(3_000)
    header = b"\0\x53\x70\xc0\7\5\x41\x40\x40\x40\x52\3"
    line.peer.stock.append(header + body[body.index(b"\0\x53\x77") :])
    [poison] = line.connection.consumer(QUEUE).receive(1, None)
    with pytest.raises(MessageFormatError):
        poison.message  # noqa: B018
    assert (poison.count, poison.redelivered) == (4, True)


def test_broker_that_does_not_count_says_only_again(line):
    line = line("RabbitMQ")
    line.open()
    line.peer.stock.extend([Message(body="a", first_acquirer=True).encode(), Message(body="b").encode()])
    consumer = line.connection.consumer(QUEUE)
    got = []
    while len(got) < 2:
        got += consumer.receive(2, None)
    assert [(d.count, d.redelivered) for d in got] == [(None, False), (None, True)]


def test_rabbitmq_may_send_more_than_was_asked_for(line):
    """It does when credit and messages cross; the consumer goes on asking for what it has room for, and no less."""
    line = line("RabbitMQ")
    line.open()
    stock = deque((n, Message(body=f"{n}").encode()) for n in range(30))
    limits = []

    def send(event):
        limits.append(event.link.credit)  # since the beginning: proton does not know of what is written past it
        beyond = 6 if len(limits) == 2 else 0  # the first time it is asked for one, to see how large they are
        while stock and stock[0][0] < limits[-1] + beyond:
            line.peer.write(transfer(*stock.popleft(), channel=event.session.channel))
        given = 30 - len(stock)
        line.peer.answer_flow(event.link, given, max(limits[-1] - given, 0))

    line.peer.reactions["flow"] = send
    consumer = line.connection.consumer(QUEUE, window=10)
    while line.connection._engine.call(lambda: consumer._link._received) < 16:
        pass
    got = []
    while len(got) < 30:
        chunk = consumer.receive(3, SECONDS)
        assert chunk, f"Only {len(got)} came; asked for were {limits}."
        got += [int(d.message.body) for d in chunk]
    assert got == list(range(30))
    assert limits[-1] < 50


def test_more_than_was_asked_for_ends_the_link(line):
    line = line()
    line.open()

    def send(event):
        line.peer.reactions["flow"] = lambda _: None
        encoded = Message(body="x").encode()
        for number in range(1000):
            line.peer.write(transfer(number, encoded, channel=event.session.channel))

    line.peer.reactions["flow"] = send
    consumer = line.connection.consumer(QUEUE, window=5)
    with pytest.raises(ResourceAllocationError, match="More messages than requested"):
        [consumer.receive(1, None) for _ in range(1000)]
    link = consumer._link
    received, requested = line.connection._engine.call(lambda: (link._received, link._requested))
    assert received <= requested


def test_delivery_is_settled_once(line):
    line = line()
    line.open()
    line.peer.stock.append(Message(body="x").encode())
    deliveries = line.connection.consumer(QUEUE).receive(1, None)
    unit, other = line.connection.unit(), line.connection.unit()
    unit.take(deliveries)
    with pytest.raises(IllegalStateError):
        other.take(deliveries)
    unit.commit()
    with pytest.raises(IllegalStateError):
        line.connection.unit().take(deliveries)


def test_receive_asks_a_broker_again_that_dropped_a_drain(line):
    line = line()
    line.open()
    line.peer.silent("drain")
    consumer = line.connection.consumer(QUEUE)
    answer = []
    asking = threading.Thread(target=lambda: answer.append(list(consumer.receive(1, 0))))
    asking.start()
    line.peer.wait_for("drain")
    line.peer.reactions.clear()
    asking.join(SECONDS)
    assert answer == [[]]
    assert line.peer.seen["drain"] >= 2


def test_chunk_is_bounded_in_bytes(line):
    line = line()
    line.open(limits=Limits(prefetch_messages=2, prefetch_bytes=1000))
    line.peer.stock.extend(Message(body="x" * 900).encode() for _ in range(6))
    consumer = line.connection.consumer(QUEUE)
    line.peer.wait_until(lambda: len(line.peer.stock) == 5)
    line.connection.check(QUEUE)
    assert len(line.peer.stock) == 5
    got = []
    while len(got) < 6:
        got += consumer.receive(6, None)
    assert not line.peer.stock


def test_an_aborted_message_gives_its_credit_back(line):
    line = line()
    line.open()
    asked = []

    def abort(event):
        asked.append(event.link.credit)
        if len(asked) < 3:
            pieces = transfer(len(asked), b"half", more=True, channel=event.session.channel)
            line.peer.write(pieces + transfer(len(asked), b"", aborted=True, channel=event.session.channel))
        else:
            line.peer.write(transfer(len(asked), Message(body="whole").encode(), channel=event.session.channel))

    line.peer.reactions["flow"] = abort
    [delivery] = line.connection.consumer(QUEUE, window=1).receive(1, SECONDS)
    assert delivery.message.body == "whole"


@pytest.fixture
def rolled_back(line):
    """A line whose consumer has given back "a" and "b"; its broker puts what comes back in its place, then sends on."""
    line, sent, out = line(), [], set()
    give, send_on = line.peer._give, line.peer.on_flow

    def remember(link, encoded):
        sent.append(encoded)
        out.add(str(len(sent)))
        give(link, encoded)

    def put_back(event):
        out.remove(event.delivery.tag)
        waiting = sorted([*line.peer.stock, sent[int(event.delivery.tag) - 1]])
        line.peer.stock.clear()
        line.peer.stock.extend(waiting)
        event.delivery.settle()
        send_on_if_all_is_back(event)

    def send_on_if_all_is_back(event):
        if not out:
            send_on(event)

    line.peer._give = remember
    line.peer.reactions.update(acknowledge=put_back, flow=send_on_if_all_is_back)
    line.open("reply_timeout=30")
    line.peer.stock.extend(map(encoded, "ab"))
    line.consumer = line.connection.consumer(QUEUE, window=3)
    unit = line.connection.unit()
    unit.take(line.consumer.receive(1, None))
    unit.rollback()
    line.peer.wait_for("acknowledge", 2)
    line.peer.do(line.peer.stock.clear)  # the tests say what it sends now
    return line


def encoded(body):
    return bytes(Message(id=body, body=body).encode())


def next_body(consumer):
    [delivery] = consumer.receive(1, None)
    return delivery.message.body


def test_what_overtakes_what_went_back_is_returned_until_that_came(rolled_back):
    rolled_back.peer.stock.extend(map(encoded, "cab"))
    assert [next_body(rolled_back.consumer) for _ in "abc"] == ["a", "b", "c"]


def test_what_comes_again_instead_of_what_went_back_is_taken(rolled_back):
    """Somebody else has got that."""
    rolled_back.peer.stock.append(encoded("c"))
    assert next_body(rolled_back.consumer) == "c"


def test_what_went_back_is_known_by_what_no_broker_changes(rolled_back):
    changed = Message(id="a", body="a", delivery_count=1, annotations={symbol("x"): 1}).encode()
    rolled_back.peer.stock.extend([bytes(changed), encoded("b")])
    assert [next_body(rolled_back.consumer) for _ in "ab"] == ["a", "b"]
    assert rolled_back.peer.seen["acknowledge"] == 2


MOST = 1000
SIZES = st.integers(1, 3 * MOST)


def test_the_first_message_is_requested_alone():
    assert ByteBudget(MOST).messages_that_fit(0) == 1


@given(st.lists(SIZES, min_size=1))
def test_one_message_may_always_be_requested_while_none_is_buffered(sizes):
    budget = ByteBudget(MOST)
    for size in sizes:
        budget.on_messages([size])
        assert budget.messages_that_fit(0) >= 1


@given(SIZES, st.lists(st.booleans(), max_size=50))
def test_what_waits_and_what_is_on_its_way_fit_where_all_are_of_one_size(size, received):
    """Whatever is received in between."""
    budget, ready, asked = ByteBudget(MOST), 0, 1
    for receive in received:
        if receive and ready:
            ready -= 1
        elif asked:
            ready, asked = ready + 1, asked - 1
            budget.on_messages([size])
        asked = max(asked, budget.messages_that_fit(ready * size))
        assert (ready + asked) * size <= max(MOST, size)


@given(SIZES)
def test_a_large_message_reduces_the_credit_for_some_time_only(large):
    budget = ByteBudget(MOST)
    budget.on_messages([large])
    for _ in range(100):
        budget.on_messages([1])
    assert budget.messages_that_fit(0) > MOST // 10


@given(st.lists(SIZES, min_size=1), SIZES)
def test_a_larger_message_reduces_the_credit_at_once(sizes, larger):
    budget = ByteBudget(MOST)
    budget.on_messages(sizes)
    budget.on_messages([larger, 1])
    assert budget.messages_that_fit(0) <= max(MOST // larger, 1)
