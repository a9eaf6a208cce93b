"""The arguments of a handler: by name, by type, and bodies as typed objects."""

import functools
import queue
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated
from unittest.mock import Mock

import pytest
from pydantic import BaseModel, Field

from jmsjca import BytesMessage, MapMessage, Message, ObjectMessage, Outcome, Queue, Session, StreamMessage, TextMessage
from jmsjca.errors import ConfigurationError, IllegalStateError, MessageFormatError
from jmsjca.inbound.handler import Handler
from jmsjca.inbound.handler_arguments import ArgumentResolver, Invocation
from tests.unit.inbound.listeners import PATIENCE, send, waiting

MESSAGE, SESSION = TextMessage("a", correlation_id="c", properties={"region": "EU"}), object.__new__(Session)


def call(function):
    handler = Handler(function)
    handler.open()
    try:
        return handler(Invocation(MESSAGE, lambda: SESSION))
    finally:
        handler.close()


class WithCall:
    def __call__(self, session: Session, text: TextMessage) -> object:
        return (text, session)

    def method(self, message: Message) -> object:
        return (message, None)

    @classmethod
    def of_class(cls, text: TextMessage) -> object:
        return (text, cls)

    @staticmethod
    def static(text: str) -> object:
        return text


class WithAsyncCall:
    async def __call__(self, text: str) -> object:
        return text


def with_settings(message: Message, session: object, priority: object) -> object:
    return (message, session, priority)


def message_of_several_kinds(m: TextMessage | BytesMessage | None) -> object:
    return m


async def coroutine(message: Message, session: Session) -> object:
    return (message, session)


def keyword_only(*, message: Message, session: Session) -> object:
    return (message, session)


def by_type(outbox: Session, order: TextMessage) -> object:
    return (order, outbox)


def with_defaults(message: Message, retries: int = 3, *args: object, **kwargs: object) -> object:
    return (message, retries, args, kwargs)


def wrapper(*args: object, **kwargs: object) -> object:
    return (args, kwargs)


def wrapper_with_session(session: Session, *args: object) -> object:
    return (session, args)


def with_names_of_the_type_checker(message: "NotThere", session: "NorThere") -> object:  # type: ignore[name-defined]  # noqa: F821
    return (message, session)


def with_some_names_of_the_type_checker(text: "str", message: "NotThere") -> "NorThere":  # type: ignore[name-defined]  # noqa: F821
    return (text, message)


def by_place(message: Message, priority, /, session):
    return (message, priority, session)


def by_place_with_a_default(message: Message, retries=3, /, session=None):
    return (message, retries, session)


def headers_by_name(message, priority, correlation_id, properties, delivery_count: int = 7):
    return (message, priority, correlation_id, dict(properties), delivery_count)


def body_and_headers(body, headers, session):
    return (body, headers["correlation_id"], headers["properties"]["region"], session)


def body_as_text(text: str, retries: int = 3):
    return (text, retries)


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (headers_by_name, (MESSAGE, 4, "c", {"region": "EU"}, 0)),
        (body_and_headers, ("a", "c", "EU", SESSION)),
        (body_as_text, ("a", 3)),
        (lambda message: message, MESSAGE),
        (lambda anything: anything, MESSAGE),
        (lambda session: session, SESSION),
        (lambda: "nothing", "nothing"),
        (lambda session, m: (m, session), (MESSAGE, SESSION)),
        (by_type, (MESSAGE, SESSION)),
        (keyword_only, (MESSAGE, SESSION)),
        (with_defaults, (MESSAGE, 3, (), {})),
        (wrapper, ((MESSAGE,), {})),
        (wrapper_with_session, (SESSION, (MESSAGE,))),
        (lambda *args, session: (args, session), ((MESSAGE,), SESSION)),
        (lambda body, *args: (body, args), ("a", ())),
        (Mock(side_effect=wrapper), ((MESSAGE,), {})),
        (with_names_of_the_type_checker, (MESSAGE, SESSION)),
        (with_some_names_of_the_type_checker, ("a", MESSAGE)),
        (WithCall(), (MESSAGE, SESSION)),
        (WithCall().method, (MESSAGE, None)),
        (WithCall.of_class, (MESSAGE, WithCall)),
        (WithCall.static, "a"),
        (WithAsyncCall(), "a"),
        (coroutine, (MESSAGE, SESSION)),
        (functools.partial(coroutine), (MESSAGE, SESSION)),
        (functools.partial(with_settings, session="mine", priority="mine"), (MESSAGE, "mine", "mine")),
        (functools.partial(functools.partial(with_settings, priority=1), session=2), (MESSAGE, 2, 1)),
        (message_of_several_kinds, MESSAGE),
        (by_place, (MESSAGE, 4, SESSION)),
        (by_place_with_a_default, (MESSAGE, 3, SESSION)),
        ([MESSAGE].count, 1),
        (functools.partial(by_type), (MESSAGE, SESSION)),
    ],
)
def test_what_is_given(function, given):
    assert call(function) == given


def two_messages(message: Message, database: object) -> None: ...


def positional(message: Message, /, database: object) -> None: ...


def keyword_needed(message: Message, *, database: object) -> None: ...


def unresolved(order: "NotThere"): ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize("function", [two_messages, positional, keyword_needed, unresolved])
def test_what_nothing_is_known_for_is_refused(function, jms_adapter):
    with pytest.raises(ConfigurationError, match=function.__name__) as caught:
        Handler(function)
    assert "which is not known" in str(caught.value)
    with pytest.raises(ConfigurationError):
        jms_adapter.listener("q")(function)


def generator(message: Message):
    yield message


async def asynchronous_generator(message: Message):
    yield message


class GeneratingCall:
    def __call__(self, message: Message):
        yield message

    def method(self, message: Message):
        yield message


@pytest.mark.parametrize(
    "function",
    [
        generator,
        asynchronous_generator,
        GeneratingCall(),
        GeneratingCall().method,
        functools.partial(generator),
        functools.partial(functools.partial(asynchronous_generator)),
    ],
)
def test_generators_are_refused(function, jms_adapter):
    with pytest.raises(ConfigurationError, match="yield"):
        jms_adapter.listener("q")(function)
    assert not jms_adapter.activations


@pytest.mark.parametrize("function", [None, "handler", MESSAGE, classmethod(generator)])
def test_what_cannot_be_called_is_refused(function, jms_adapter):
    with pytest.raises(ConfigurationError, match="__call__"):
        jms_adapter.listener("q")(function)


def test_closing_twice_does_nothing():
    handler = Handler(coroutine)
    handler.open()
    assert handler(Invocation(MESSAGE, lambda: SESSION)) == (MESSAGE, SESSION)
    handler.close()
    handler.close()
    with pytest.raises(IllegalStateError, match="down"):
        handler(Invocation(MESSAGE, lambda: SESSION))
    handler.open()
    assert handler(Invocation(MESSAGE, lambda: SESSION)) == (MESSAGE, SESSION)
    handler.close()


BODY_SESSION = object.__new__(Session)


class Order(BaseModel):
    item: str
    count: int = 1


@dataclass
class Point:
    x: int
    y: int


Positive, Brief = Annotated[int, Field(gt=0)], Annotated[str, Field(max_length=3)]


def given(hint, message):
    def handler(content):
        return content

    handler.__annotations__["content"] = hint
    return Handler(handler)(Invocation(message, lambda: BODY_SESSION))


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
        (Positive, TextMessage("5"), 5),
        (Positive | None, TextMessage("null"), None),
        (Sequence[Positive], TextMessage("5"), [5]),
        (Annotated[Sequence[Positive], "a batch"], TextMessage("5"), [5]),
        (Brief, TextMessage("5"), "5"),
        (Brief | None, TextMessage("nul"), "nul"),
        (Annotated[str | None, Field(max_length=3)], TextMessage(), None),
        (Annotated[bytes, Field(max_length=3)], BytesMessage(b"\xff"), b"\xff"),
        (Annotated[TextMessage, "text"], MESSAGE, MESSAGE),
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
        (Positive, TextMessage("-5")),
        (Positive | None, TextMessage("-5")),
        (Sequence[Positive], TextMessage("-5")),
        (Annotated[Sequence[Positive], "a batch"], TextMessage("-5")),
        (list[Positive], TextMessage("[5, -5]")),
        (Brief, TextMessage("four")),
        (Brief | None, TextMessage("four")),
        (Annotated[str | None, Field(max_length=3)], TextMessage("four")),
        (Annotated[bytes, Field(max_length=3)], BytesMessage(b"four")),
        (Brief, BytesMessage(b"a")),
    ],
)
def test_body_that_does_not_fit_is_refused(hint, message):
    with pytest.raises(MessageFormatError):
        given(hint, message)


def test_error_tells_where_and_shows_no_value():
    with pytest.raises(MessageFormatError, match="'content': count: Input should be a valid integer") as caught:
        given(Order, TextMessage('{"item": "tea", "count": "secret"}'))
    assert "secret" not in str(caught.value)


def test_error_names_the_type_without_its_constraints():
    with pytest.raises(
        MessageFormatError, match="does not fit int of the parameter 'content': it: Input should be gre"
    ):
        given(Positive, TextMessage("-5"))


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


MODES = {
    "serial": {},
    "sync": {"concurrency_mode": "sync", "endpoint_pool_max_size": 1},
    "cc": {"concurrency_mode": "cc", "endpoint_pool_max_size": 1},
    "batch": {"concurrency_mode": "cc", "endpoint_pool_max_size": 1, "batch_size": 2},
    "held": {"concurrency_mode": "sync", "endpoint_pool_max_size": 1, "hold_until_ack": True},
    "held batch": {"concurrency_mode": "cc", "endpoint_pool_max_size": 1, "batch_size": 2, "hold_until_ack": True},
}
EVERY_MODE = pytest.mark.parametrize("spec", MODES.values(), ids=MODES.keys())


class OrderModel(BaseModel):
    item: str


@EVERY_MODE
def test_what_is_asked_for_is_given_and_what_is_returned_is_sent(adapter, recorder, spec):
    got: queue.Queue[object] = queue.Queue()

    @adapter.listener("q", **spec)
    def handler(*, order: OrderModel | None, message: Message, priority, outbox: Session):
        message.acknowledge()
        if order is not None:
            got.put((order.item, message.body, priority))
            outbox.create_producer(Queue("out")).send(TextMessage(order.item))
        return "reply"

    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue("q")).send(TextMessage('{"item": "tea"}', reply_to=Queue("replies")), priority=7)
    with adapter:
        recorder.await_outcome(Outcome.COMMITTED)
        assert got.get_nowait() == ("tea", '{"item": "tea"}', 7)
        assert waiting(adapter, "out") == [("tea", 0)]
        assert waiting(adapter, "replies") == [("reply", 0)]


@EVERY_MODE
def test_a_body_that_does_not_fit_is_a_failure_of_the_handler(adapter, recorder, spec):
    """Rolled back, remembered, and moved by the redelivery handling with what was wrong."""

    @adapter.listener("q", redelivery_handling="2:move(queue:dead)", **spec)
    def handler(order: OrderModel) -> None:
        raise AssertionError("not to be called")

    errors: queue.Queue[str | None] = queue.Queue()

    @adapter.listener("dead")
    def reading(message: Message) -> None:
        errors.put(message.get_string_property("JMS_Sun_JMSJCA_ExceptionMessage"))

    send(adapter, '{"item": 5}')
    with adapter:
        assert "'order': item: Input should be a valid string" in str(errors.get(timeout=PATIENCE))
        for _ in range(2):
            recorder.await_outcome(Outcome.ROLLED_BACK)


def takes_text(order: TextMessage) -> object:
    return order


def takes_one_of_two(*, message: TextMessage | MapMessage) -> object:
    return message


def takes_texts(orders: Sequence[TextMessage]) -> object:
    return orders


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (takes_text, "'order' of the handler takes a TextMessage"),
        (takes_one_of_two, "'message' of the handler takes a TextMessage or MapMessage"),
        (takes_texts, "'orders' of the handler takes a TextMessage"),
    ],
)
def test_message_of_another_kind_than_its_parameter_is_a_failure_of_the_handler(function, text):
    """As is a body that cannot be converted; the function is not called."""
    resolver = ArgumentResolver(function)
    content = [MESSAGE, BytesMessage(b"a")] if function is takes_texts else BytesMessage(b"a")
    with pytest.raises(MessageFormatError, match=f"is a BytesMessage, but the parameter {text}.*Annotate it with"):
        resolver.resolve(Invocation(content, lambda: SESSION))


@pytest.mark.parametrize("function", [takes_text, takes_one_of_two, takes_texts])
def test_message_of_the_kind_of_its_parameter_is_passed(function):
    positional, named = ArgumentResolver(function).resolve(Invocation(MESSAGE, lambda: SESSION))
    assert [*positional, *named.values()] == [[MESSAGE] if function is takes_texts else MESSAGE]


def test_listener_of_texts_rolls_back_a_bytes_message(adapter, recorder):
    adapter.listener("q", redelivery_handling="1:move(queue:bad)")(takes_text)
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue("q")).send(b"no text")
        with adapter:
            assert recorder.outcomes.get(timeout=PATIENCE)[0] is Outcome.ROLLED_BACK
            moved = session.create_consumer(Queue("bad")).receive(PATIENCE)
    assert moved.body == b"no text"
    assert "takes a TextMessage" in moved.properties["JMS_Sun_JMSJCA_ExceptionMessage"]


@dataclass
class Row:
    a: int


def test_handlers_get_none_for_a_body_that_is_absent(jms_adapter):
    """Found: they were never called, and the message was dead-lettered."""
    found = queue.Queue()

    @jms_adapter.listener("one", redelivery_handling="1:delete")
    def of_one(row: Row | None) -> None:
        found.put(row)

    @jms_adapter.listener("many", redelivery_handling="1:delete", concurrency_mode="sync", batch_size=2)
    def of_many(rows: Sequence[Row | None]) -> None:
        for row in rows:
            found.put(row)

    jms_adapter.send("one", TextMessage())
    assert found.get(timeout=PATIENCE) is None
    jms_adapter.send_many("many", [TextMessage(), TextMessage('\ufeff{"a": 1}')])
    assert [found.get(timeout=PATIENCE) for _ in range(2)] == [None, Row(1)]
