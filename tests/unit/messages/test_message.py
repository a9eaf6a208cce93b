"""Messages: the behaviour that all message types share, and their text form."""

import tracemalloc

import pytest

from jmsjca import BytesMessage, MapMessage, Message, ObjectMessage, Queue, StreamMessage, TextMessage, Topic
from jmsjca.destinations import Destination, Subscription, destination
from jmsjca.errors import IllegalStateError, InvalidDestinationError, MessageFormatError, MessageNotWriteableError
from jmsjca.messages import Properties

BODIES = {
    TextMessage: "text",
    BytesMessage: b"bytes",
    MapMessage: {"a": 1, "b": b"x", "c": None},
    StreamMessage: (1, b"x", None),
    ObjectMessage: {"some": "object"},
}
KINDS = [Message, *BODIES]
EMPTY = {Message: None, TextMessage: None, BytesMessage: None, MapMessage: {}, StreamMessage: (), ObjectMessage: None}


def received(kind: type[Message]) -> Message:
    message = kind(BODIES.get(kind))
    message.properties = Properties.received({"a": 1})
    message._freeze()
    return message


def test_properties_are_a_mapping():
    properties = Properties({"a": 1, "b": "x"})
    assert (len(properties), list(properties), properties.get("c")) == (2, ["a", "b"], None)
    del properties["a"]
    assert dict(properties) == {"b": "x"}
    with pytest.raises(KeyError):
        _ = properties["a"]


def test_received_properties_cannot_be_changed():
    properties = Properties.received({"a": 1})
    with pytest.raises(MessageNotWriteableError, match="clear_properties"):
        properties["a"] = 2
    with pytest.raises(MessageNotWriteableError):
        del properties["a"]
    with pytest.raises(MessageNotWriteableError):
        properties.update(b=1)
    with pytest.raises(MessageNotWriteableError):
        properties.clear()
    assert dict(properties) == {"a": 1}


@pytest.mark.parametrize("kind", KINDS)
def test_received_message_is_read_only_part_by_part(kind):
    message = received(kind)
    with pytest.raises(MessageNotWriteableError, match="clear_body"):
        message.body = BODIES.get(kind)
    with pytest.raises(MessageNotWriteableError):
        message.set_int_property("a", 2)
    message.clear_body()
    assert message.body == EMPTY[kind]
    message.body = BODIES.get(kind)
    with pytest.raises(MessageNotWriteableError):
        message.set_int_property("a", 2)
    message.clear_properties()
    message.set_int_property("b", 2)
    assert dict(message.properties) == {"b": 2}


@pytest.mark.parametrize("kind", KINDS)
def test_headers_of_a_received_message_can_be_changed(kind):
    message = received(kind)
    message.correlation_id, message.type, message.reply_to = "c", "t", Queue("q")
    assert (message.correlation_id, message.type, message.reply_to) == ("c", "t", Queue("q"))


@pytest.mark.parametrize("kind", KINDS)
def test_clearing_the_properties_leaves_the_body_read_only(kind):
    message = received(kind)
    message.clear_properties()
    with pytest.raises(MessageNotWriteableError):
        message.body = BODIES.get(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_message_has_an_empty_body(kind):
    assert kind().body == EMPTY[kind]
    message = kind(BODIES.get(kind), properties={"a": 1})
    message.clear_body()
    assert (message.body, dict(message.properties)) == (EMPTY[kind], {"a": 1})


@pytest.mark.parametrize("kind", [kind for kind in BODIES if kind is not ObjectMessage])
def test_body_is_what_was_set(kind):
    assert kind(BODIES[kind]).body == BODIES[kind]
    message = kind()
    message.body = BODIES[kind]
    assert message.body == BODIES[kind]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        *[(TextMessage, b"x"), (TextMessage, 1), (BytesMessage, "x"), (BytesMessage, [1]), (Message, "x")],
        *[(MapMessage, [1]), (MapMessage, "x"), (MapMessage, {"a": []}), (MapMessage, {"": 1}), (MapMessage, {1: 1})],
        *[(StreamMessage, 1), (StreamMessage, "x"), (StreamMessage, b"x"), (StreamMessage, [[]])],
        (ObjectMessage, lambda: None),
    ],
)
def test_body_of_another_type_is_refused(kind, body):
    with pytest.raises(MessageFormatError):
        kind(body)
    message = kind(BODIES.get(kind))
    before = message.pickled if kind is ObjectMessage else message.body
    with pytest.raises(MessageFormatError):
        message.body = body
    assert (message.pickled if kind is ObjectMessage else message.body) == before


GIVEN = [
    (TextMessage("a"), str, "a"),
    (BytesMessage(bytearray(b"a")), bytes, b"a"),
    (MapMessage({"a": 1}), dict, {"a": 1}),
    (StreamMessage((1, 2)), list, [1, 2]),
    (TextMessage("a"), object, "a"),
    (MapMessage({"a": 1}), object, {"a": 1}),
]
REFUSED = [
    *[(TextMessage("a"), bytes), (BytesMessage(b"a"), str), (MapMessage({}), list), (StreamMessage([]), dict)],
    *[(TextMessage(), str), (BytesMessage(), bytes), (Message(), str)],
    *[(ObjectMessage("a"), str), (ObjectMessage(b"a"), bytes), (ObjectMessage("a"), object)],
]


@pytest.mark.parametrize(("message", "kind", "body"), GIVEN)
def test_get_body(message, kind, body):
    assert message.is_body_assignable_to(kind)
    assert message.get_body(kind) == body
    assert type(message.get_body(kind)) is type(body)


@pytest.mark.parametrize(("message", "kind"), REFUSED)
def test_get_body_of_another_type_or_of_none_is_refused(message, kind):
    assert not message.is_body_assignable_to(kind)
    with pytest.raises(MessageFormatError):
        message.get_body(kind)


@pytest.mark.parametrize("message", [MapMessage({"a": 1}), StreamMessage([1])])
def test_get_body_gives_a_copy(message):
    message.get_body(object).clear()
    assert len(message.body) == 1


@pytest.mark.parametrize(("delivered", "redelivered"), [(0, 0), (1, 0), (2, 1), (5, 4)])
def test_redelivery_count_is_one_less_than_the_delivery_count(delivered, redelivered):
    message = Message()
    message.delivery_count = delivered
    assert message.redelivery_count == redelivered


@pytest.mark.parametrize("call", [Message.acknowledge, Message.set_rollback_only])
def test_message_that_was_not_delivered_has_no_unit(call):
    with pytest.raises(IllegalStateError, match="not delivered"):
        call(Message())


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_attribute_is_refused(kind):
    with pytest.raises(AttributeError):
        kind().prioritty = 4


def test_destinations_are_values():
    assert Queue("a") == Queue("a") != Queue("b")
    assert Queue("a") != Topic("a")
    assert {Queue("a"), Queue("a"), Topic("a")} == {Topic("a"), Queue("a")}
    assert (str(Queue("a")), str(Topic("a"))) == ("queue:a", "topic:a")
    assert Subscription(Topic("a"), "s").durable
    assert not Subscription(Topic("a")).durable


def test_destination_of_a_kind():
    assert (destination("a", "queue"), destination("a", "topic")) == (Queue("a"), Topic("a"))
    with pytest.raises(InvalidDestinationError, match="'table'"):
        destination("a", "table")


@pytest.mark.parametrize("kind", [Queue, Topic, Destination])
def test_destination_needs_a_name(kind):
    with pytest.raises(InvalidDestinationError, match="needs a name"):
        kind("")


LIMIT = 1024
HIDDEN = "hidden"


class Hostile(dict):
    def __repr__(self):
        raise AssertionError("somebody looked")

    __str__ = __len__ = __iter__ = __getitem__ = __repr__


SHOWN_BODIES = [
    TextMessage(HIDDEN * 1_000_000),
    BytesMessage(HIDDEN.encode() * 1_000_000),
    MapMessage({HIDDEN: HIDDEN * 1_000_000}),
    StreamMessage([HIDDEN] * 100_000),
    ObjectMessage({HIDDEN: HIDDEN * 100_000}),
    ObjectMessage.from_pickled(b"cos\nsystem\n(S'touch /tmp/canary'\ntR."),
    Message(properties={HIDDEN * 1000: HIDDEN * 1000, "p": HIDDEN}),
]


@pytest.mark.parametrize("message", SHOWN_BODIES, ids=lambda message: type(message).__name__)
def test_no_body_and_no_property_is_shown(message):
    message.message_id, message.destination = "ID:1", Queue("orders")
    for form in (repr(message), str(message), f"{message}"):
        assert form == f"<{type(message).__name__} ID:1 to queue:orders>"


@pytest.mark.parametrize("kind", [TextMessage, MapMessage, ObjectMessage])
def test_the_body_is_not_even_looked_at(kind):
    message = kind()
    message._body = Hostile()
    assert repr(message).startswith(f"<{kind.__name__} ")


@pytest.mark.parametrize(
    "text", ["x" * 10_000_000, "\x1b" * 10_000, "\U000e0001" * 10_000, "%s" * 10_000, "\n" * 10_000]
)
def test_long_ids_and_names_are_cut(text):
    message = Message()
    message.message_id, message.destination = text, destination(text, "queue")
    assert len(repr(message)) <= LIMIT
    assert repr(message).isprintable()


def test_a_large_message_is_shown_without_copying_it():
    message = TextMessage("x" * 20_000_000)
    tracemalloc.start()
    try:
        repr(message)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("sign", ["\n", "\r", "\x1b", "\0", "\x7f", "\x85", "\u2028", "\u202e", "\t"])
def test_nothing_breaks_out_of_its_line(sign):
    message = Message()
    message.message_id, message.destination = f"ID:{sign}1", Queue(f"a{sign}b")
    assert sign not in repr(message)
    assert repr(message).isprintable()


def test_readable_text_stays_readable():
    message = Message()
    message.message_id, message.destination = "ID:größe 'x' <b>", Queue("名前")
    assert repr(message) == "<Message ID:größe 'x' <b> to queue:名前>"


def test_text_form_of_mappings_names_what_is_in_them():
    assert repr(Message(properties={"region": HIDDEN, "size": 1}).properties) == "<Properties of 2: region, size>"
    assert repr(MapMessage({"a\nb": HIDDEN}).body) == "<MapBody of 1: a\\nb>"


def test_text_form_of_mappings_is_bounded():
    many = Message(properties={f"{'n' * 1000}{number}": HIDDEN for number in range(1000)}).properties
    odd = MapMessage({"\U000e0001" * 1000 + str(number): HIDDEN for number in range(1000)}).body
    assert all(len(repr(mapping)) <= LIMIT and HIDDEN not in repr(mapping) for mapping in (many, odd))


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("text", r"message\.body"), ("getText", r"message\.body"), ("ack", r"acknowledge\(\)"), ("nack", "Reject")],
)
def test_names_of_other_clients_have_a_hint(name, remedy):
    with pytest.raises(AttributeError, match=remedy):
        getattr(TextMessage("x"), name)
    assert not hasattr(TextMessage("x"), name)
