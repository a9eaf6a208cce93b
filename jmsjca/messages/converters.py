"""The registry of converters: bodies of any type to messages, and messages to bodies of a requested type."""

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import NoneType, UnionType
from typing import Any, ClassVar, Protocol, TypeVar, Union, get_args, get_origin

from jmsjca.arguments import Constraint, check
from jmsjca.destinations import Destination
from jmsjca.errors import ArgumentTypeError, ConfigurationError, JMSError, MessageFormatError
from jmsjca.messages.bytes_and_stream import BytesMessage
from jmsjca.messages.json_text import CONTENT_TYPE, body_reader, is_model, json_text, kind_name, without_metadata
from jmsjca.messages.map_message import MapMessage
from jmsjca.messages.message import Message, TextMessage

__all__ = ["Body", "Converters", "message_from_body"]

T = TypeVar("T")

Read = Callable[[Message], object]


class Model(Protocol):
    """A pydantic model."""

    def model_dump_json(self) -> str:
        """Return the model as JSON."""
        ...


class DataclassInstance(Protocol):
    """An instance of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


Body = str | bytes | bytearray | Mapping[str, object] | Model | DataclassInstance
"""A body that a producer makes a message of, by `message_from_body`."""


@dataclass(frozen=True, slots=True)
class _Converter:
    to_message: Callable[[Any], object] | None
    from_message: Read | None
    type_id: str | None
    content_type: str | None


class Converters:
    """Converts bodies to messages and back. Thread-safe, and can be pickled if its functions can.

    Without registrations, text makes a text message, bytes a bytes message, and any other value a text message that
    holds JSON: mappings, lists, scalars, pydantic models, dataclasses, and msgspec Structs. Types that are not
    registered here are looked up in the parent.

    Args:
        parent: The registry with the converters of other types; None for `Converters.default`.
        map_messages: True to make map messages of mappings, False for JSON; None for the parent's choice, which is JSON
            in `Converters.default`.
        type_property: Property that holds the type id, as ``typeIdPropertyName`` of Spring's
            ``MappingJackson2MessageConverter``.

    Raises:
        ArgumentTypeError: An argument has a wrong type.
    """

    def __init__(
        self, parent: "Converters | None" = None, *, map_messages: bool | None = None, type_property: str = "_type"
    ) -> None:
        check(_ARGUMENTS, parent=parent, map_messages=map_messages)
        self._map_messages = map_messages
        self._parent = parent
        self._type_property = type_property
        self._by_kind: dict[Any, _Converter] = {}
        self._by_type_id: dict[str, Any] = {}

    @classmethod
    def default(cls) -> "Converters":
        """Return the registry of this process, the parent of each other one."""
        return _DEFAULT

    @property
    def map_messages(self) -> bool:
        """True if mappings make map messages."""
        if self._map_messages is None:
            return self is not _DEFAULT and (self._parent or _DEFAULT).map_messages
        return self._map_messages

    def register(
        self,
        kind: type[T],
        *,
        to_message: Callable[[T], object] | None = None,
        from_message: Callable[[Message], T] | None = None,
        type_id: str | None = None,
        content_type: str | None = None,
    ) -> None:
        """Register how a class is converted. A later registration of the class replaces the earlier one.

        Register before listeners are activated: their parameters are resolved then.

        Args:
            kind: The class. A subclass that is not registered is converted in the same way.
            to_message: Returns a message for an object, or a body of another type to make it of; None for JSON.
            from_message: Returns an object for a message; None to read JSON.
            type_id: Name of the class in Java, for instance ``com.example.Order``. It is sent in the type property, and
                selects the class for received messages with it.
            content_type: Content type, for instance ``application/json``. It is sent in the property ``content_type``.

        Raises:
            InvalidArgumentError: ``kind`` is not a class, or a converter is not a function.
            ConfigurationError: The type id is registered for another class.
        """
        check(_ARGUMENTS, kind=kind, to_message=to_message, from_message=from_message)
        if type_id is not None and self._by_type_id.get(type_id, kind) is not kind:
            raise ConfigurationError(
                f"The type id {type_id!r:.200} is registered for {kind_name(self._by_type_id[type_id])}."
            )
        known = self._by_kind.get(kind)
        if known is not None and known.type_id is not None:
            del self._by_type_id[known.type_id]
        self._by_kind[kind] = _Converter(to_message, from_message, type_id, content_type)
        if type_id is not None:
            self._by_type_id[type_id] = kind

    def to_message(self, body: object) -> Message:
        """Return a message with a body; a message itself, and a message without a body for None.

        Raises:
            MessageFormatError: The body has no JSON form, or its converter failed. The message names the path and the
                type, and shows no value.
        """
        if isinstance(body, Message):
            return body
        converter, type_property = self._find(type(body))
        if converter is None:
            return _plain_message(body, map_messages=self.map_messages)
        if converter.to_message is not None:
            made = _call(converter.to_message, body, f"a {type(body).__name__} to a message")
            message = made if isinstance(made, Message) else _plain_message(made, map_messages=self.map_messages)
        else:
            message = _plain_message(body, map_messages=self.map_messages)
        if converter.type_id is not None:
            message.properties.setdefault(type_property, converter.type_id)
        if converter.content_type is not None:
            message.properties.setdefault(CONTENT_TYPE, converter.content_type)
        return message

    def from_message(self, message: Message, kind: type[T]) -> T:
        """Return the body of a message as an object of a class.

        Args:
            message: The message.
            kind: The class.

        Raises:
            MessageFormatError: The body does not fit. The message names the path and the type, and shows no value.
            ConfigurationError: No body can be converted to that class.
        """
        return self.reader(kind)(message)  # type: ignore[return-value]  # the reader is one for this class

    def reader(self, kind: Any, parameter: str | None = None) -> Read:
        """Return a function that reads the bodies of messages as a type. It is resolved once, as for a parameter.

        Args:
            kind: A registered class; `str` or `bytes` for a body of that type; or a type that pydantic or msgspec can
                validate (a model, a dataclass, a Struct, ``dict[str, int]``) for JSON, a map or a stream message.
                ``| None`` also accepts a message without a body. Constraints of ``Annotated`` are checked, but not for
                a registered class: its converter decides.
            parameter: The name of the parameter for the object, for error messages; None without one.

        Raises:
            ConfigurationError: No body can be converted to that type.
        """
        target = kind_name(kind) + (f" of the parameter {parameter!r}" if parameter else "")
        choices = self._choices(kind)
        try:
            read = self._reader(kind, target)
        except TypeError as error:
            if not choices:
                taker = f"{parameter!r} takes no body: none" if parameter else "No body"
                raise ConfigurationError(f"{taker} can be converted to {kind_name(kind)}: {error}") from error
            read = partial(_without_type_id, target)
        return partial(_select, choices, read) if choices else read

    def _reader(self, kind: Any, target: str) -> Read:
        """Return the reader of a type, without regard to type ids.

        Raises:
            TypeError: No converter is known.
        """
        members = _members(kind)
        one, optional = members[0] if len(members) == 1 else kind, NoneType in get_args(without_metadata(kind))
        converter = self._find_exact(one)
        if converter is not None and converter.from_message is not None:
            read: Read = partial(_read_with, converter.from_message, target)
        elif one in (str, bytes):
            read = partial(_plain_body, one) if kind in (one, one | None) else body_reader(kind, target, plain=one)
        else:
            read = body_reader(kind, target)
        return partial(_optional, read) if optional else read

    def _choices(self, kind: Any) -> dict[tuple[str, str], Read]:
        """Return the readers of the registered classes that a type accepts, by type property and id."""
        parent: Converters = self._parent or _DEFAULT
        found = {} if self is _DEFAULT else parent._choices(kind)
        optional = NoneType in get_args(without_metadata(kind))
        for type_id, registered in self._by_type_id.items():
            if any(_accepts(each, registered) for each in _members(kind)):
                read = self._reader(registered, kind_name(registered))
                found[self._type_property, type_id] = partial(_optional, read) if optional else read
        return found

    def _find(self, kind: type) -> tuple[_Converter | None, str]:
        """Return the converter for bodies of a class, and the name of the type property."""
        if self._by_kind:
            for each in kind.__mro__:
                if each in self._by_kind:
                    return self._by_kind[each], self._type_property
        parent: Converters = self._parent or _DEFAULT
        return (None, "") if self is _DEFAULT else parent._find(kind)

    def _find_exact(self, kind: Any) -> _Converter | None:
        if isinstance(kind, type) and kind in self._by_kind:
            return self._by_kind[kind]
        parent: Converters = self._parent or _DEFAULT
        return None if self is _DEFAULT else parent._find_exact(kind)

    def __reduce__(self) -> Any:
        return "_DEFAULT" if self is _DEFAULT else super().__reduce__()

    def __repr__(self) -> str:
        return f"<Converters of {len(self._by_kind)} classes>"


_FUNCTION_OR_NONE = Constraint[object](
    "a function or None", fits=lambda given: given is None or callable(given), misfit=ArgumentTypeError
)
_ARGUMENTS: Mapping[str, Constraint[object]] = {
    "parent": Constraint("a Converters() or None", (Converters, NoneType)),
    "map_messages": Constraint("True, False or None", (bool, NoneType)),
    "kind": Constraint("a class", type),
    "to_message": _FUNCTION_OR_NONE,
    "from_message": _FUNCTION_OR_NONE,
}
_DEFAULT = Converters()


def message_from_body(body: object) -> Message:
    """Return a new message with a body, by the rules of producers: mappings make map messages (JMS 3.1).

    Args:
        body: `str` (a text message), `bytes` (a bytes message), a mapping (a map message), a pydantic model or a
            dataclass (a text message with JSON), or None (a message without a body).

    Raises:
        MessageFormatError: No message can hold a body of that type.
    """
    for kind, create in _MESSAGE_TYPES.items():
        if isinstance(body, kind):
            return create(body)
    if isinstance(body, type):
        raise _no_message(f"the class {body.__name__}; give an instance of it")
    if is_model(body):
        return TextMessage(json_text(body))
    remedy = "; await it first" if hasattr(type(body), "__await__") else ""
    raise _no_message(f"{type(body).__name__}{remedy}")


def _no_message(of: str) -> MessageFormatError:
    return MessageFormatError(
        f"No message can be made of {of}. Send a str, bytes, a mapping, a pydantic model, a dataclass, or a message of "
        "your own."
    )


_MESSAGE_TYPES: dict[type, type[Message]] = {
    str: TextMessage,
    bytes: BytesMessage,
    bytearray: BytesMessage,
    Mapping: MapMessage,
    NoneType: Message,
}


def _plain_message(body: object, *, map_messages: bool) -> Message:
    if isinstance(body, Destination):
        raise MessageFormatError(
            f"{body!r:.200} cannot be a body: a send has the destination first, and then the body. To send the name of "
            "a destination, give the text."
        )
    for kind, create in _MESSAGE_TYPES.items():
        if isinstance(body, kind) and (map_messages or kind is not Mapping):
            return create(body)
    return TextMessage(json_text(body))


def _members(kind: Any) -> list[Any]:
    """Return the members of a union, without None and metadata. For any other type, return a list of that type."""
    kind = without_metadata(kind)
    members = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return [without_metadata(it) for it in members if it is not NoneType]


def _accepts(kind: Any, registered: type) -> bool:
    return isinstance(kind, type) and not get_args(kind) and issubclass(registered, kind)


def _select(choices: Mapping[tuple[str, str], Read], read: Read, message: Message) -> object:
    """Read a body as the class that its type id names. For any other id, call ``read``."""
    for (name, type_id), read_choice in choices.items():
        if message.properties.get(name) == type_id:
            return read_choice(message)
    return read(message)


def _without_type_id(target: str, message: Message) -> object:
    raise MessageFormatError(
        f"The body of {message} does not fit {target}: the message has no type id that is registered for it."
    )


def _plain_body(kind: type[object], message: Message) -> object:
    return message.get_body(kind)


def _optional(read: Read, message: Message) -> object:
    body: object = message.body
    return None if body is None else read(message)


def _read_with(from_message: Read, target: str, message: Message) -> object:
    return _call(from_message, message, f"the body of {message} to {target}")


def _call(convert: Callable[[Any], object], value: object, what: str) -> object:
    """Call a converter. Its error's text may contain the body, so only its class and place are reported."""
    try:
        return convert(value)
    except JMSError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever the user's function raises
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise MessageFormatError(
            f"The registered converter could not convert {what}: {type(error).__name__} in {place.name} "
            f"({place.filename}, line {place.lineno})."
        ) from None
