"""The fault proxy recognises frames, however their bytes are split."""

import pytest

from jmsjca.testing.contract.network import AMQPSplitter, STOMPSplitter


def amqp(performative, payload=b"", channel=0):
    body = b"\x00\x53" + performative + payload
    return (8 + len(body)).to_bytes(4, "big") + b"\x02\x00" + channel.to_bytes(2, "big") + body


GREETING = b"AMQP\x00\x01\x00\x00"
HEARTBEAT = b"\x00\x00\x00\x08\x02\x00\x00\x00"
BEGIN = amqp(b"\x11\xc0\x09\x04\x60\x00\x03\x43\x52\x01\x52\x01", channel=7)  # answers channel 3
DECLARE = amqp(b"\x14\xc0\x07\x04\x43\x43\xa0\x01\x31\x43", b"\x00\x53\x70\x45\x00\x53\x77\x00\x53\x31\x45")
COMMIT = amqp(
    b"\x14\xc0\x08\x04\x43\x52\x05\xa0\x01\x32\x43", b"\x00\x53\x77\x00\x53\x32\xc0\x05\x02\xa0\x01\x39\x42", channel=3
)
ROLLBACK = amqp(
    b"\x14\xc0\x08\x04\x43\x52\x06\xa0\x01\x32\x43", b"\x00\x53\x77\x00\x53\x32\xc0\x05\x02\xa0\x01\x39\x41"
)
MESSAGE = amqp(
    b"\x14\xc0\x08\x04\x43\x52\x07\xa0\x01\x33\x43", b"\x00\x53\x70\xc0\x02\x01\x41\x00\x53\x77\xa1\x02\x00\x53"
)
REST = amqp(b"\x14\xc0\x02\x01\x43", b"\x00\x53\x77\x00\x53\x32")  # of a message, with bytes like those of a commit
OUR_ACCEPT = amqp(b"\x15\xc0\x0a\x05\x41\x43\x52\x09\x41\x00\x53\x24\x45")
THEIR_ANSWER = amqp(b"\x15\xc0\x0b\x05\x41\x52\x04\x52\x06\x41\x00\x53\x24\x45", channel=7)
FRAMES = (GREETING, HEARTBEAT, BEGIN, DECLARE, COMMIT, ROLLBACK, MESSAGE, REST, OUR_ACCEPT, THEIR_ANSWER)

STOMP = (
    b"\n",
    b"BEGIN\ntransaction:t\n\n\0",
    b"SEND\ndestination:/queue/q\ncontent-length:11\n\nCOMMIT\n\n\0\0\n\0",
    b"SEND\r\ndestination:/queue/q\r\n\r\nbody\0",
    b"ACK\nid:1\n\n\0",
    b"COMMIT\ntransaction:t\nreceipt:one\n\n\0",
    b"RECEIPT\nreceipt-id:one\n\n\0",
)


def split(splitter, data, size):
    return [frame for n in range(0, len(data), size) for frame in splitter.feed(data[n : n + size])]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_amqp(size):
    frames = split(AMQPSplitter(), b"".join(FRAMES), size)
    assert tuple(frame.data for frame in frames) == FRAMES
    kinds = ["", "", "other", "begin", "commit", "rollback", "send", "send", "acknowledge", "acknowledge"]
    assert [frame.kind for frame in frames] == kinds


def test_amqp_answers():
    down = {frame.data: frame for frame in split(AMQPSplitter(), BEGIN + THEIR_ANSWER, 1000)}
    (commit,) = AMQPSplitter().feed(COMMIT)
    assert commit.asks == (3, 5)
    assert down[THEIR_ANSWER].answers_to((3, 5))
    assert not any(down[THEIR_ANSWER].answers_to(asked) for asked in ((3, 3), (3, 7), (7, 5)))
    assert not down[BEGIN].answers_to((3, 5))


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_stomp(size):
    frames = split(STOMPSplitter(), b"".join(STOMP), size)
    assert tuple(frame.data for frame in frames) == STOMP
    assert [frame.kind for frame in frames] == ["", "begin", "send", "send", "acknowledge", "commit", "other"]
    assert [frame.answers_to(frames[5].asks) for frame in frames] == [False] * 6 + [True]
