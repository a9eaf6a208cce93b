"""Bodies of any type become messages, and messages become bodies of a requested type."""

import pickle
import sys
from collections import ChainMap
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, field_validator

from jmsjca import BytesMessage, MapMessage, Message, ObjectMessage, Queue, ResourceAdapter, TextMessage
from jmsjca.errors import ArgumentTypeError, ConfigurationError, MessageFormatError
from jmsjca.messages.converters import Converters

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc"), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


class Model(BaseModel):
    count: int

    @field_validator("count")
    @classmethod
    def check(cls, count):
        if count < 0:
            raise ValueError(f"{count} is wrong")
        return count


@dataclass
class Point:
    x: int


class Struct(msgspec.Struct):
    x: int


class Plain:
    """Nothing converts it but a registered converter."""

    def __init__(self, text):
        self.text = text


class Special(Plain):
    pass


class Basket(TypedDict):
    fruit: str


@given(st.dictionaries(st.text("abc"), JSON) | st.lists(JSON))
def test_json_survives_a_round_trip(value):
    message = Converters().to_message(value)
    assert isinstance(message, TextMessage)
    assert Converters().from_message(message, type(value)) == value


@given(st.integers(-(2**63), 2**63 - 1))
@pytest.mark.parametrize("kind", [Point, Struct])
def test_objects_survive_a_round_trip(kind, x):
    read = Converters().from_message(Converters().to_message(kind(x)), kind)
    assert read == kind(x)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (5, "5"),
        (True, "true"),
        ([Point(1), Model(count=2), Struct(3)], '[{"x":1},{"count":2},{"x":3}]'),
        (ChainMap({"a": (1, 2)}), '{"a":[1,2]}'),
        (Struct(1), '{"x":1}'),
    ],
)
def test_values_are_json_text(body, text):
    assert Converters().to_message(body).body == text


def test_text_bytes_none_and_messages_are_what_they_are():
    message = TextMessage("own")
    made = [Converters().to_message(body) for body in ("text", b"bytes", None, message)]
    assert [(type(it), it.body) for it in made[:3]] == [
        (TextMessage, "text"),
        (BytesMessage, b"bytes"),
        (Message, None),
    ]
    assert made[3] is message


def test_map_messages_are_inherited_unless_they_are_decided():
    parent = Converters(map_messages=True)
    assert type(Converters(parent).to_message({"a": 1})) is MapMessage
    assert type(Converters(parent, map_messages=False).to_message({"a": 1})) is TextMessage


@pytest.mark.parametrize("culprit", [object(), float("nan"), Plain, iter("a"), "\ud800"])
def test_error_of_a_value_without_json_form_names_path_and_type(culprit):
    with pytest.raises(MessageFormatError, match=r"type dict, has no JSON form at items\.1\.deep: ") as caught:
        Converters().to_message({"items": ["secret", {"deep": culprit}]})
    assert "secret" not in str(caught.value)


def test_circular_value_is_refused():
    body: list[Any] = []
    body.append(body)
    with pytest.raises(MessageFormatError, match="no JSON form"):
        Converters().to_message(body)


@pytest.mark.parametrize(
    ("kind", "body", "told"),
    [
        (Model, '{"count": "secret"}', "does not fit Model: count: Input should be"),
        (Model, '{"count": -4111}', r"count: the value is not accepted \(value_error\)"),
        (Struct, '{"x": "secret"}', r"does not fit Struct: \$\.x: Expected `int`, got `str`"),
        (list[Struct], '[{"x": "secret"}]', r"\$\[0\]\.x: Expected"),
        (Struct, "secret", "it: Invalid JSON"),
    ],
)
def test_error_of_a_body_names_path_and_type_only(kind, body, told):
    with pytest.raises(MessageFormatError, match=told) as caught:
        Converters().from_message(TextMessage(body), kind)
    assert not any(word in str(caught.value) for word in ("secret", "4111"))


def test_struct_is_read_from_a_map():
    assert Converters().from_message(MapMessage({"x": 1}), Struct) == Struct(1)


def test_charset_of_the_content_type_is_used():
    body = '{"x": 1}'.encode("utf-16")
    message = BytesMessage(body, properties={"content_type": "application/json; charset=UTF-16"})
    assert Converters().from_message(message, Point) == Point(1)
    message.properties["content_type"] = "application/json; charset=nonsense"
    with pytest.raises(MessageFormatError, match="charset nonsense"):
        Converters().from_message(message, Point)


def registry():
    own = Converters()
    own.register(Plain, to_message=lambda it: it.text, from_message=lambda message: Plain(message.body))
    return own


def test_own_converters_are_used_for_subclasses_and_by_child_registries():
    child = Converters(registry())
    assert child.to_message(Special("a")).body == "a"
    assert child.from_message(TextMessage("b"), Plain).text == "b"
    assert child.reader(Plain | None)(TextMessage()) is None


def test_error_of_an_own_converter_tells_class_and_place_only():
    own = Converters()
    own.register(Plain, from_message=lambda message: {}[message.body])
    with pytest.raises(MessageFormatError, match=r"body of .* to Plain: KeyError in .*test_converters\.py") as caught:
        own.from_message(TextMessage("secret"), Plain)
    assert "secret" not in str(caught.value)


def test_type_id_is_sent_and_selects_the_class():
    own = Converters()
    own.register(Point, type_id="com.example.Point", content_type="application/json")
    own.register(Model, type_id="com.example.Model")
    message = own.to_message(Point(1))
    assert dict(message.properties) == {"_type": "com.example.Point", "content_type": "application/json"}
    assert own.reader(Model | Point)(message) == Point(1)
    assert own.reader(object)(own.to_message(Model(count=1))) == Model(count=1)


def test_type_id_that_the_parameter_does_not_accept_is_ignored():
    own = Converters()
    own.register(Point, type_id="com.example.Point")
    message = own.to_message(Point(1))
    assert own.reader(dict)(message) == {"x": 1}
    message.properties["_type"] = "unknown"
    assert own.reader(Point)(message) == Point(1)


@pytest.mark.parametrize("kind", [Annotated[Plain, "noted"], Annotated[Plain, "noted"] | None])
def test_own_converter_decides_for_an_annotated_type(kind):
    assert registry().reader(kind)(TextMessage("a")).text == "a"


def test_base_class_needs_a_type_id():
    own = registry()
    own.register(Special, from_message=lambda message: Special(message.body), type_id="special")

    class Other:
        pass

    assert type(own.reader(Plain)(TextMessage("a", properties={"_type": "special"}))) is Special
    with pytest.raises(ConfigurationError, match="No body can be converted to Other"):
        own.reader(Other)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic accepts typing.TypedDict from Python 3.12 on")
def test_refusal_says_what_to_change_in_the_type():
    with pytest.raises(ConfigurationError, match=r"converted to Basket: .*typing_extensions\.TypedDict"):
        Converters().reader(Basket)


def test_wrong_registrations_are_refused():
    own = Converters()
    own.register(Point, type_id="a")
    with pytest.raises(ConfigurationError, match="registered for Point"):
        own.register(Model, type_id="a")
    with pytest.raises(ArgumentTypeError, match="to_message"):
        own.register(Model, to_message="text")  # type: ignore[arg-type]


def test_new_registration_replaces_the_type_id():
    own = Converters()
    own.register(Point, type_id="a")
    own.register(Point, type_id="b")
    own.register(Model, type_id="a")
    assert own.to_message(Point(1)).properties["_type"] == "b"


def test_default_registry_stays_itself_when_pickled():
    assert pickle.loads(pickle.dumps(Converters.default())) is Converters.default()  # noqa: S301
    own = Converters()
    own.register(Point, type_id="a")
    copy = pickle.loads(pickle.dumps(own))  # noqa: S301
    assert copy.to_message(Point(1)).properties["_type"] == "a"


@pytest.mark.parametrize("map_messages", [True, False])
def test_adapter_uses_its_registry_to_send(jms_broker_url, map_messages):
    own = Converters()
    own.register(Plain, to_message=lambda it: {"text": it.text})
    adapter = ResourceAdapter(jms_broker_url, converters=own, map_messages=map_messages)
    sent = [adapter.send("q", body) for body in ({"a": 1}, Plain("b"))]
    with adapter.connection_factory().create_context() as context:
        received = list(context.create_browser(Queue("q")))
    adapter.stop()
    expected = [{"a": 1}, {"text": "b"}] if map_messages else ['{"a":1}', '{"text":"b"}']
    assert [it.body for it in sent] == [it.body for it in received] == expected


OPTIONAL = [
    *(Point | None, Model | None, Struct | None, dict | None, dict[str, int] | None, list | None),
    *(list[int] | None, int | None, float | None, bool | None, Point | Model | None, Point | str | None, str | None),
    *(bytes | None, Annotated[int, Field(gt=0)] | None, Annotated[Point | None, "noted"]),
]


@pytest.mark.parametrize("kind", OPTIONAL, ids=str)
@pytest.mark.parametrize("message", [TextMessage(), BytesMessage(), Message(), ObjectMessage()], ids=repr)
def test_a_message_without_a_body_is_none_where_that_is_accepted(kind, message):
    assert Converters().reader(kind)(message) is None


@pytest.mark.parametrize("kind", [Point, Model, Struct, dict, list, int])
def test_a_message_without_a_body_does_not_fit_a_type_without_none(kind):
    with pytest.raises(MessageFormatError):
        Converters().reader(kind)(TextMessage())


def test_an_optional_type_reads_a_body_as_before():
    for kind, body, value in [(Point | None, '{"x":1}', Point(1)), (int | None, "7", 7), (Point | None, "null", None)]:
        assert Converters().reader(kind)(TextMessage(body)) == value
    with pytest.raises(MessageFormatError, match="x: Field required"):
        Converters().reader(Point | None)(TextMessage("{}"))


def test_a_registered_class_that_the_type_id_names_may_be_absent():
    converters = Converters()
    converters.register(Point, type_id="point")
    message = TextMessage(properties={"_type": "point"})
    assert converters.reader(Point | None)(message) is None
    with pytest.raises(MessageFormatError):
        converters.reader(Point)(message)


@pytest.mark.parametrize(
    ("kind", "json", "value"), [(Point, '{"x":1}', Point(1)), (Struct, '{"x":1}', Struct(1)), (list, "[1]", [1])]
)
@pytest.mark.parametrize("charset", [None, "utf-8", "utf-16", "utf-16-le", "utf-32-be"])
def test_a_byte_order_mark_before_json_is_ignored(kind, json, value, charset):
    """RFC 8259, section 8.1; Spark's typed columns have the same rule."""
    told = {"content_type": f"application/json; charset={charset}"} if charset else {}
    marked = BytesMessage(f"\ufeff{json}".encode(charset or "utf-8"), properties=told)
    for message in (marked, TextMessage(f"\ufeff{json}"), TextMessage(json)):
        assert Converters().reader(kind)(message) == value
    with pytest.raises(MessageFormatError):
        Converters().reader(kind)(TextMessage(f"\ufeff\ufeff{json}"))


def test_a_byte_order_mark_is_part_of_a_text():
    assert Converters().reader(str)(TextMessage("\ufeffa")) == "\ufeffa"
