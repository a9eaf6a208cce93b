"""The body of a message as the type that a parameter of the handler is annotated with."""

from dataclasses import dataclass

import pytest
from pydantic import BaseModel

from jmsjca import BytesMessage, MapMessage, Message, ObjectMessage, Session, StreamMessage, TextMessage
from jmsjca.errors import ConfigurationError, MessageFormatError
from jmsjca.inbound.handler import Handler
from jmsjca.inbound.handler_arguments import Invocation

SESSION = object.__new__(Session)


class Order(BaseModel):
    item: str
    count: int = 1


@dataclass
class Point:
    x: int
    y: int


def given(hint, message):
    def handler(content):
        return content

    handler.__annotations__["content"] = hint
    return Handler(handler)(Invocation(message, lambda: SESSION))


@pytest.mark.parametrize(
    ("hint", "message", "expected"),
    [
        (str, TextMessage("a"), "a"),
        (bytes, BytesMessage(b"a"), b"a"),
        (Order, TextMessage('{"item": "tea", "count": 2}'), Order(item="tea", count=2)),
        (Order, BytesMessage(b'{"item": "tea"}'), Order(item="tea")),
        (Order, MapMessage({"item": "tea", "count": 3}), Order(item="tea", count=3)),
        (Point, TextMessage('{"x": 1, "y": 2}'), Point(1, 2)),
        (dict, MapMessage({"a": 1}), {"a": 1}),
        (dict[str, int], TextMessage('{"a": 1}'), {"a": 1}),
        (list[int], StreamMessage([1, 2]), [1, 2]),
        (int, TextMessage("5"), 5),
        (Order | None, TextMessage("null"), None),
        (str | None, TextMessage("a"), "a"),
        (str | None, TextMessage("null"), "null"),
        (str | None, TextMessage(), None),
        (None | bytes, BytesMessage(b"a"), b"a"),
        (bytes | None, BytesMessage(), None),
    ],
)
def test_body_is_converted(hint, message, expected):
    assert given(hint, message) == expected


@pytest.mark.parametrize(
    ("hint", "message"),
    [
        (str, BytesMessage(b"a")),
        (str, TextMessage()),
        (str | None, BytesMessage(b"a")),
        (bytes, TextMessage("a")),
        (Order, TextMessage("no JSON")),
        (Order, TextMessage('{"count": 2}')),
        (Order, TextMessage()),
        (Order, BytesMessage()),
        (Order, Message()),
        (Order, StreamMessage(["tea"])),
        (Point, TextMessage('{"x": "one", "y": 2}')),
        (int, TextMessage("5.5")),
    ],
)
def test_body_that_does_not_fit_is_refused(hint, message):
    with pytest.raises(MessageFormatError):
        given(hint, message)


def test_error_tells_where_and_shows_no_value():
    with pytest.raises(MessageFormatError, match="'content': count: Input should be a valid integer") as caught:
        given(Order, TextMessage('{"item": "tea", "count": "secret"}'))
    assert "secret" not in str(caught.value)


def test_many_errors_are_not_all_told():
    with pytest.raises(MessageFormatError, match="…") as caught:
        given(list[int], TextMessage(str(["x"] * 10_000).replace("'", '"')))
    assert len(str(caught.value)) < 1500


def test_objects_are_not_unpickled():
    with pytest.raises(MessageFormatError, match="get_object"):
        given(Order, ObjectMessage({"item": "tea"}))


def test_type_that_no_body_can_be_converted_to():
    class Database:
        pass

    with pytest.raises(ConfigurationError, match=r"'content'.*Database"):
        given(Database, TextMessage("a"))
