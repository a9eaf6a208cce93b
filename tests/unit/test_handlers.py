"""What the parameters of a handler may ask for."""

import functools
from unittest.mock import Mock

import pytest

from jmsjca import BytesMessage, Message, Session, TextMessage
from jmsjca.errors import ConfigurationError, IllegalStateError
from jmsjca.inbound.handler import Handler
from jmsjca.inbound.handler_arguments import Invocation

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
