"""Whatever a broker can hand over is dead-lettered, and is handled no more often than the redelivery handling says."""

import struct
from functools import partial

import pytest
from amqp_peer import Broker, Gone, Peer
from amqp_peer.performatives import Disposition, Transfer

from jmsjca import BytesMessage, ConnectionFactory, ObjectMessage, Queue, reconnection
from jmsjca.errors import MessageFormatError
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.delivery import ReceivedMessage
from tests.unit.inbound import poison
from tests.unit.inbound.poison import MODES, TIMES, Report, dead_letter_amqp, dead_letter_stomp, run
from tests.unit.inbound.poison_forms import encoded_list, encoded_map, encoded_text, section
from tests.unit.providers.stomp.broker_sessions import Letter

SAMPLE = 500
WHOLE = 10_000
_YEAR_10000 = b"\x83" + struct.pack(">q", 253_402_300_800_000)
_ID = encoded_text("ID:1")
_DATA = section(0x75, b"\xa0\x01x")


def properties(**fields):
    """A properties section with these fields, by their places."""
    values = [b"\x40"] * 13
    for place, value in fields.items():
        values[int(place.lstrip("_"))] = value
    return section(0x73, encoded_list(values))


def application_properties(name, value):
    return section(0x74, encoded_map({encoded_text(name): value}))


MAP = section(0x77, encoded_map({encoded_text("size"): b"\x54\x03", encoded_text("name"): encoded_text("pear")}))
TYPED = {
    "map": MAP,
    "list": section(0x77, encoded_list([b"\x54\x01", encoded_text("two")])),
    "number": section(0x77, b"\x54\x07"),
    "boolean": section(0x77, b"\x41"),
    "uuid": section(0x77, b"\x98" + bytes(range(16))),
    "symbol": section(0x77, b"\xa3\x01a"),
    "character": section(0x77, b"\x73\x00\x00\x00A"),
}
DEFECTS = {
    **{f"object of plain data: {kind}": properties(_0=_ID) + body for kind, body in TYPED.items()},
    "expires after the year 9999": properties(_0=_ID, _8=_YEAR_10000) + _DATA,
    "created after the year 9999": properties(_0=_ID, _9=_YEAR_10000) + _DATA,
    "a correlation id of a type that AMQP does not allow": properties(_0=_ID, _5=b"\x54\x07") + _DATA,
    "a list as correlation id": properties(_0=_ID, _5=b"\x45") + _DATA,
    "a long as message id": properties(_0=b"\x55\x07") + _DATA,
    "a list as message id": properties(_0=b"\x45") + _DATA,
    "no message id": properties() + _DATA,
    "JMS_AMQP_TTL that is a text": properties(_0=_ID)
    + application_properties("JMS_AMQP_TTL", encoded_text("x"))
    + _DATA,
    "JMS_AMQP_TTL of another size": properties(_0=_ID)
    + application_properties("JMS_AMQP_TTL", b"\x81" + 8 * b"\xff")
    + _DATA,
    "typed encoding of a text": application_properties("JMS_AMQP_TYPED_ENCODING", b"\x41") + _DATA,
    "bytes as a property": properties(_0=_ID) + application_properties("key", b"\xa0\x01\xff") + _DATA,
    "a header with fields of other types": section(0x70, encoded_list([encoded_map({})])) + properties() + _DATA,
    "a header in which a broker cannot count": section(0x70, encoded_list([b"\x74" + bytes(4)])) + properties() + _DATA,
    "a header that is long": section(0x70, encoded_list([b"\x40", b"\x40", encoded_text("x" * 90)])) + _DATA,
    "a boolean as message id": properties(_0=b"\x42") + _DATA,
    "no sections": b"",
    "no message at all": b"\xff\xff",
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("defect", DEFECTS)
def test_is_moved_when_the_ladder_says_so(defect, mode):
    """Two of them, one behind the other: neither hides the other one, nor loops."""
    report, _ = dead_letter_amqp([DEFECTS[defect]] * 2, mode)
    assert report == Report(2, 2, report.calls, report.most_calls)
    assert report.most_calls <= TIMES


@pytest.mark.parametrize("options", [{"hold_until_ack": True, "concurrency_mode": "cc"}, {"transaction": "none"}])
@pytest.mark.parametrize("defect", DEFECTS)
def test_is_moved_with_held_acknowledgement_and_without_a_transaction(defect, options):
    mode = options.get("concurrency_mode", "serial")
    report, _ = dead_letter_amqp([DEFECTS[defect]], mode, **{**options, "concurrency_mode": mode})
    assert (report.moved, report.most_calls <= TIMES) == (1, True)


def received(payload):
    return ReceivedMessage(payload, ReceiveContext(Queue("q"), counts_deliveries=True))


@pytest.mark.parametrize("kind", TYPED)
def test_plain_data_is_moved_as_plain_data(kind):
    """Java's clients could not read a pickle."""
    _, [moved] = dead_letter_amqp([properties(_0=_ID) + TYPED[kind]], "serial")
    copy, original = received(moved).message, received(TYPED[kind]).message
    assert isinstance(copy, ObjectMessage)
    assert copy.body == original.body
    assert copy.properties["JMS_AMQP_TYPED_ENCODING"] is True


def test_a_moved_copy_has_the_reason():
    """As raw bytes, too: the class and the text of the error, and where the message came from."""
    for defect in ("a list as correlation id", "no message at all"):
        _, [moved] = dead_letter_amqp([DEFECTS[defect]], "serial")
        copy = received(moved).message
        assert isinstance(copy, BytesMessage)
        assert copy.properties["JMS_Sun_JMSJCA_OriginalDestinationName"] == "q"
        assert str(copy.properties["JMS_Sun_JMSJCA_ExceptionClass"]).endswith("Error")


@pytest.mark.parametrize(
    ("encoded", "value"),
    [(encoded_text("x"), "x"), (b"\x81" + 8 * b"\xff", -1), (b"\x71\x00\x00\x03\xe8", 1000)],
    ids=["a text", "of another size", "one second"],
)
def test_a_time_to_live_of_another_sender_stays_a_property_and_is_not_that_of_the_copy(encoded, value):
    _, [moved] = dead_letter_amqp(
        [properties(_0=_ID) + application_properties("JMS_AMQP_TTL", encoded) + _DATA], "serial"
    )
    copy = received(moved).message
    assert (copy.body, copy.expiration) == (b"x", None)
    assert copy.properties["_JMSJCA_JMS_AMQP_TTL"] == value


def test_a_message_that_expires_after_the_year_9999_is_moved_as_it_is():
    _, [moved] = dead_letter_amqp([DEFECTS["expires after the year 9999"]], "serial")
    copy = received(moved).message
    assert (copy.body, copy.properties["JMS_Sun_JMSJCA_OriginalJMSMessageID"]) == (b"x", "ID:1")
    assert (copy.expiration, copy.properties["_JMSJCA_OriginalExpiration"]) == (None, 253_402_300_799_999)


def test_the_bytes_of_what_is_no_message_are_kept():
    _, [moved] = dead_letter_amqp([DEFECTS["no message at all"]], "serial")
    assert received(moved).message.body.endswith(DEFECTS["no message at all"])


@pytest.mark.parametrize("defect", DEFECTS)
def test_is_deleted_when_the_ladder_says_so(defect):
    account = poison.delete_amqp([DEFECTS[defect]], "serial")
    assert account.most <= TIMES


@pytest.mark.parametrize("defect", DEFECTS)
def test_is_received_shown_and_acknowledged(defect):
    """By a session: receiving and showing it raise nothing; if anything does, it is the header that is damaged."""
    broker = Broker()
    broker.store.put("q", DEFECTS[defect])
    peer = Peer(broker)
    try:
        with (
            ConnectionFactory(f"amqp://{peer.address}").create_connection() as connection,
            connection.create_session(transacted=True) as session,
        ):
            consumer = session.create_consumer(Queue("q"))
            try:
                message = consumer.receive(timeout=30)
            except MessageFormatError:
                assert defect == "no message at all"
            else:
                assert repr(message)
            session.commit()
    finally:
        peer.close()
    assert not broker.store.queues["q"]


def test_two_cuts_while_it_is_moved_change_nothing():
    """The copy has its origin and its reason, and the handler does not see the message for the third time."""
    cuts = [1, 2]

    def cut(service, frame):
        link = service.links.get((frame.channel, frame.body.handle))
        if cuts and link.attach.target.address == "dlq":
            cuts.pop()
            raise Gone
        service.carry_out(frame)

    broker = Broker()
    broker.instead[Transfer] = cut
    report, [moved] = dead_letter_amqp([properties(_0=_ID) + _DATA], "serial", broker=broker)
    assert (report.calls, cuts) == (TIMES, [])
    told = received(moved).message.properties
    assert (told["JMS_Sun_JMSJCA_OriginalJMSMessageID"], told["JMS_Sun_JMSJCA_ExceptionMessage"]) == ("ID:1", "poison")


class Forgetful(Broker):
    """Loses connections when a message is returned or moved, and forgets its deliveries, like one that is killed."""

    def __init__(self, returns, moves):
        super().__init__()
        self.cuts = {Disposition: returns, Transfer: moves}
        self.instead = {kind: partial(self._cut, kind) for kind in self.cuts}

    def __call__(self, line, peer):
        try:
            super().__call__(line, peer)
        finally:
            for kept in self.store.queues["q"]:
                kept.failures = 0

    def _cut(self, kind, service, frame):
        if self.cuts[kind]:
            self.cuts[kind] -= 1
            raise Gone
        service.carry_out(frame)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("returns", "moves"), [(1, 0), (2, 0), (0, 1), (2, 1)])
def test_a_broker_that_forgets_deliveries_lets_nobody_handle_a_message_more_often(mode, returns, moves, monkeypatch):
    """The endpoint remembers them as long as its process lives."""
    monkeypatch.setattr(reconnection, "_BACKOFF", (0.01,))
    broker = Forgetful(returns, moves)
    report, [moved] = dead_letter_amqp([properties(_0=_ID) + _DATA], mode, broker=broker)
    assert (report.calls, set(broker.cuts.values())) == (TIMES, {0})
    assert received(moved).message.properties["JMS_Sun_JMSJCA_OriginalJMSMessageID"] == "ID:1"


STOMP_DEFECTS = {
    "metadata that is no JSON": {"_jmsjca": "{"},
    "metadata of another kind": {"_jmsjca": "7"},
    "half of a surrogate pair": {"_jmsjca": '{"k":"text","c":"\\ud800"}'},
    "a priority that is no number": {"priority": "high"},
    "a priority out of range": {"priority": "99"},
    "expires after the year 9999": {"expires": "253402300800000"},
    "a time that is no number": {"timestamp": "yesterday"},
    "a reply-to that is no address": {"reply-to": ""},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("defect", STOMP_DEFECTS)
def test_is_moved_over_stomp_when_the_ladder_says_so(defect, mode):
    letters = [Letter(f"m{number}", dict(STOMP_DEFECTS[defect]), b"text") for number in range(2)]
    report, _ = dead_letter_stomp(letters, mode)
    assert (report.moved, report.most_calls <= TIMES) == (2, True)


@pytest.mark.parametrize("mode", MODES)
def test_text_with_nul_is_moved_whole_over_stomp_and_what_is_behind_it_too(mode):
    """ActiveMQ sends the text of a Java client without a content-length."""
    bodies = [b"a\0b", b"\0\0", b"behind"]
    letters = [Letter(f"m{number}", {}, body, sized=False) for number, body in enumerate(bodies)]
    report, left = dead_letter_stomp(letters, mode)
    assert (report.moved, report.most_calls <= TIMES) == (3, True)
    assert sorted(letter.body for letter in left) == sorted(bodies)


def test_no_message_of_any_form_is_handled_more_often(capsys):
    done = run(SAMPLE, seed=20)
    with capsys.disabled():
        print(f"\npoison messages {done['messages']} of {WHOLE} (sample), handler calls {done['calls']}")
    assert done["calls"] > SAMPLE  # most of them can be decoded, so that the handler sees them
