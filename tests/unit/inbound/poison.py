"""Messages of any legal and half-legal AMQP and STOMP form, sent through listeners that always fail.

Each message is handed to the handler as often as the redelivery handling allows, never more often, and is then found in
the dead-letter queue::

    PYTHONPATH=tests/support python -m tests.unit.inbound.poison --messages 10000
"""

import argparse
import queue
import random
import struct
from collections import Counter
from typing import NamedTuple

from amqp_peer import Broker, Peer

from jmsjca import ActivationSpec, Hooks, ResourceAdapter
from tests.unit.inbound.listeners import PATIENCE
from tests.unit.providers.amqp.codec.encodings import FORMS
from tests.unit.providers.stomp import broker as stomp
from tests.unit.providers.stomp.broker_sessions import Letter

__all__ = [
    "MODES",
    "TIMES",
    "Report",
    "amqp_message",
    "dead_letter_amqp",
    "dead_letter_stomp",
    "delete_amqp",
    "run",
    "stomp_letter",
]

MODES = ("serial", "sync", "cc")
TIMES = 2
"""How often the handler sees a message, by ``2:move(queue:dlq)``."""
_ROUND = 100  # messages of one listener

_FORMS = [bytes.fromhex(code) for code, _ in FORMS]
_HUGE = struct.pack(">q", 253_402_300_800_000)  # the first millisecond of the year 10000
_EXTREMES = [b"\x83" + _HUGE, b"\x83\x80" + bytes(7), b"\x81" + _HUGE, b"\x83\x7f" + 7 * b"\xff", b"\xa1\x01\x00"]
_TEXTS = ["", "ID:1", "ID:AMQP_UUID:no", "ID:AMQP_ULONG:7", "a b", "ü", "\U0001f600", "x" * 300, "\0", "queue://q"]
_NAMES = [
    *(
        "colour",
        "a b",
        "",
        "ü",
        "JMSXGroupID",
        "JMSXGroupSeq",
        "JMSXDeliveryCount",
        "JMSXUserID",
        "JMSX-a b",
        "_AMQ_DUPL_ID",
    ),
    *(
        "JMS_AMQP_TTL",
        "JMS_AMQP_TYPED_ENCODING",
        "JMS_AMQP_REPLY_TO_GROUP_ID",
        "JMS_Sun_JMSJCA_RedeliveryCount",
        "NULL",
    ),
    *("JBXAcknowledgmentTimeout", "x" * 300),
]
_ANNOTATIONS = ["x-opt-jms-msg-type", "x-opt-jms-dest", "x-opt-jms-reply-to", "x-opt-delivery-time", "x-opt-of-nobody"]
_CONTENT_TYPES = ["text/plain", "text/plain;charset=utf-7", "application/x-java-serialized-object", "a/b", "no type"]


def amqp_message(chance):
    """Return the bytes of a message: most are legal, the others legal in part, cut off, or empty."""
    sections = _header(chance) + _annotations(chance) + _properties(chance) + _application_properties(chance)
    sections += _body(chance)
    kind = chance.random()
    if kind < 0.02:
        return b""
    whole = b"".join(sections)
    if kind < 0.05:
        return whole[: chance.randrange(len(whole) + 1)]
    return whole + chance.choice(_FORMS) if kind < 0.07 else whole


def _header(chance):
    fields = [chance.choice([b"\x40", b"\x41", b"\x42"]), chance.choice([b"\x40", b"\x50\x07", b"\x50\xff"])]
    return [_section(0x70, _list(fields))] if chance.random() < 0.5 else []


def _annotations(chance):
    pairs = {_symbol(name): _annotation(chance) for name in chance.sample(_ANNOTATIONS, chance.randrange(3))}
    return [_section(0x72, _map(pairs))] if pairs else []


def _annotation(chance):
    return b"\x51" + bytes([chance.choice([0, 1, 1, 1, 3, 5, 7])]) if chance.random() < 0.97 else _value(chance)


def _properties(chance):
    fields = [b"\x40"] * 13
    for place in chance.sample(range(13), chance.randrange(6)):
        fields[place] = _value(chance)
    if chance.random() < 0.3:
        fields[6] = _symbol(chance.choice(_CONTENT_TYPES))
    if chance.random() < 0.6:
        fields[0] = _text(f"ID:{chance.getrandbits(64)}")
    return [_section(0x73, _list(fields))] if chance.random() < 0.8 else []


def _application_properties(chance):
    pairs = {_text(name): _value(chance) for name in chance.sample(_NAMES, chance.randrange(5))}
    return [_section(0x74, _map(pairs))] if pairs else []


def _body(chance):
    data = [_section(0x75, b"\xa0" + bytes([size]) + bytes(size)) for size in range(chance.randrange(3))]
    sequence = [_section(0x76, _list([_value(chance) for _ in range(chance.randrange(4))]))]
    value, pairs = [_section(0x77, _value(chance))], {_text(name): _value(chance) for name in chance.sample(_NAMES, 2)}
    kinds = [data, sequence, value, [_section(0x77, _map(pairs))], [_section(0x77, _list([_value(chance)]))], []]
    kinds += [[_section(0x75, _value(chance))], [*data, *value]]
    return chance.choice(kinds)


def _value(chance):
    pools = ([_text(text) for text in _TEXTS], _FORMS, _EXTREMES)
    return chance.choice(chance.choice(pools))


def _section(code, value):
    return bytes((0, 0x53, code)) + value


def _text(text):
    encoded = text.encode()
    return b"\xb1" + struct.pack(">I", len(encoded)) + encoded


def _symbol(text):
    return b"\xb3" + struct.pack(">I", len(text)) + text.encode()


def _list(values):
    return _compound(0xD0, values)


def _map(pairs):
    return _compound(0xD1, [part for pair in pairs.items() for part in pair])


def _compound(code, parts):
    data = b"".join(parts)
    return bytes([code]) + struct.pack(">II", len(data) + 4, len(parts)) + data


_HEADERS = {
    "correlation-id": _TEXTS[:-2],
    "type": _TEXTS[:-2],
    "reply-to": ["/queue/answers", "/temp-queue/x", "nowhere", "", "/queue/"],
    "priority": ["0", "9", "99", "-1", "high", ""],
    "timestamp": ["1767323045678", "253402300800000", "-99999999999999", "yesterday", "1.5"],
    "expires": ["0", "253402300800000", "never"],
    "persistent": ["true", "false", "perhaps"],
    "content-type": ["text/plain", "application/octet-stream", "no type"],
    "transformation": ["jms-map-json", "jms-map-xml", "nothing"],
    "colour": ["red", "", " red ", "a\nb", "x" * 300],
    "JMSXGroupID": ["g", ""],
    "JMSXGroupSeq": ["1", "one"],
    "JMS_AMQP_TTL": ["1000", "soon"],
    "_jmsjca": ["{", "[]", "7", '{"k":"map"}', '{"k":"text","i":7}', '{"k":"text","c":"\\ud800"}', '{"k":"none"}'],
    "a b": ["c"],
}
_BODIES = [b"", b"text", "ü".encode(), b"\xff\xfe", b"{", b'{"a":1}', b"a\0b", b"x" * 2000]


def stomp_letter(chance, number):
    """Return a message with headers that a sender may have set, to whatever value."""
    names = chance.sample(list(_HEADERS), chance.randrange(6))
    headers = {name: chance.choice(_HEADERS[name]) for name in names}
    return Letter(f"m{number}", headers, chance.choice(_BODIES))


class Report(NamedTuple):
    """What was seen of some messages."""

    messages: int
    moved: int
    calls: int
    most_calls: int  # of one message; in modes that keep no order, of messages that are told apart by their ids


class _Account(Hooks):
    """Counts the calls of the handler between the ends of messages."""

    def __init__(self):
        self.calls, self.since, self.most = 0, 0, 0
        self.letters = queue.Queue()

    def handle(self, message):
        self.calls += 1
        self.since += 1
        raise ValueError("poison")

    def dead_lettered(self, endpoint, letter):
        self.most, self.since = max(self.most, self.since), 0
        self.letters.put(letter)


def _listen(url, mode, messages, *, action="move(queue:dlq)", **spec):
    account = _Account()
    adapter = ResourceAdapter(url, hooks=[account])
    handling = f"{TIMES}:{action}"
    spec = {"destination": "q", "concurrency_mode": mode, "redelivery_handling": handling, **spec}
    adapter.activate(ActivationSpec(**spec), account.handle)
    with adapter:
        for number in range(messages):
            try:
                account.letters.get(timeout=PATIENCE)
            except queue.Empty:
                raise AssertionError(f"{number} of {messages} messages were moved in mode {mode}") from None
    return account


def dead_letter_amqp(payloads, mode, *, broker=None, **spec):
    """Let a listener dead-letter messages over AMQP; return the report and the bytes in the dead-letter queue."""
    broker = broker or Broker()
    for payload in payloads:
        broker.store.put("q", payload)
    peer = Peer(broker)
    try:
        account = _listen(f"amqp://{peer.address}", mode, len(payloads), **spec)
    finally:
        peer.close()
    left = [kept.payload for kept in broker.store.queues["dlq"]]
    assert not broker.store.queues["q"]
    return _report(account, mode, payloads, left), left


def delete_amqp(payloads, mode):
    """Let a listener delete messages over AMQP, and return the account of its calls."""
    broker = Broker()
    for payload in payloads:
        broker.store.put("q", payload)
    peer = Peer(broker)
    try:
        account = _listen(f"amqp://{peer.address}", mode, len(payloads), action="delete")
    finally:
        peer.close()
    assert not broker.store.queues["q"]
    return account


def dead_letter_stomp(letters, mode, **spec):
    """Let a listener dead-letter messages over STOMP; return the report and the letters in the dead-letter queue."""
    with stomp.Peer() as peer:
        peer.queues["/queue/q"] = list(letters)
        account = _listen(peer.url, mode, len(letters), **spec)
        left = peer.queues.get("/queue/dlq", [])
        assert not peer.queues.get("/queue/q")
    return _report(account, mode, letters, left), left


def _report(account, mode, messages, left):
    most = account.most if mode == "serial" else -(-account.calls // len(messages))
    return Report(len(messages), len(left), account.calls, most)


def run(messages, seed):
    """Send messages in rounds, over both protocols and in every mode, and return the total.

    Raises:
        AssertionError: A message was not moved, or was handled too often.
    """
    chance, total = random.Random(seed), Counter()
    for number in range(-(-messages // _ROUND)):
        mode = MODES[number // 2 % len(MODES)]
        if number % 2:
            report, _ = dead_letter_stomp([stomp_letter(chance, place) for place in range(_ROUND)], mode)
        else:
            report, _ = dead_letter_amqp([amqp_message(chance) for _ in range(_ROUND)], mode)
        assert report.moved == report.messages, f"round {number}: {report}"
        assert report.most_calls <= TIMES, f"round {number}: {report}"
        assert report.calls <= TIMES * report.messages, f"round {number}: {report}"
        total.update(messages=report.messages, calls=report.calls)
    return total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=20)
    arguments = parser.parse_args()
    done = run(arguments.messages, arguments.seed)
    print(f"poison messages {done['messages']}, handler calls {done['calls']} of {TIMES * done['messages']} at most")
