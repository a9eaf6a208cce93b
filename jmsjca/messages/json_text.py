"""JSON in the bodies of messages: values as JSON text, and bodies as typed objects."""

import json
import re
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache, partial
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from jmsjca.errors import MessageFormatError
from jmsjca.messages.bytes_and_stream import BytesMessage
from jmsjca.messages.message import Message, TextMessage

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

__all__ = [
    "BYTE_ORDER_MARK",
    "CONTENT_TYPE",
    "body_reader",
    "json_text",
    "kind_name",
    "with_finite_numbers",
    "without_metadata",
]

CONTENT_TYPE = "content_type"
"""The property that holds the content type, as in Spring (``JmsHeaderMapper.CONTENT_TYPE_PROPERTY``)."""

BYTE_ORDER_MARK = "\ufeff"
"""The character that some programs write before JSON."""

_MAX_PROBLEMS, _MAX_DEPTH = 5, 50
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\s\";]+)", re.IGNORECASE)
_UNSAFE_PROBLEMS = {"value_error", "assertion_error", "union_tag_invalid"}  # their texts may contain the value
_SAFE_MSGSPEC = ("Expected ", "Object missing ")  # other texts of msgspec may contain the value


def json_text(value: object) -> str:
    """Return a value as JSON text.

    Args:
        value: A mapping, list, tuple, set or scalar; a pydantic model, a dataclass or a msgspec Struct; or any
            combination of them. Dates, enums, decimals and UUIDs are written as pydantic writes them.

    Raises:
        MessageFormatError: The value, or a value in it, has no JSON form. The message names its path and type.
    """
    try:
        return _encoded(value)
    except (TypeError, ValueError, RecursionError) as error:  # the errors of pydantic are among them
        path, culprit = _unserialisable(value)
        where = f" at {path}" if path else ""
        raise MessageFormatError(
            f"The body, of type {type(value).__name__}, has no JSON form{where}: {_reason(culprit)} "
            f"({type(error).__name__}). Register a converter for its type, or send text."
        ) from None


def body_reader(kind: Any, target: str, *, plain: type[object] | None = None) -> Callable[[Message], object]:
    """Return a function that reads the body of a message as a type.

    Text and bytes are read as JSON, the values of map and stream messages as they are.

    Args:
        kind: A type that pydantic or, if the program has imported it, msgspec can validate.
        target: The type in error messages.
        plain: `str` or `bytes` for a body of that type that is validated as it is; None for JSON.

    Raises:
        TypeError: Neither can.
    """
    if _has_struct(kind):
        return partial(_read, partial(_parse_struct, kind), target)
    from pydantic import TypeAdapter  # slow to import
    from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

    try:
        adapter = TypeAdapter[Any](kind)
    except PydanticSchemaGenerationError as error:
        raise TypeError("pydantic cannot validate it.") from error
    except PydanticUserError as error:  # its text names the remedy
        raise TypeError(error.message) from error
    return partial(_read, partial(_parse_with_pydantic, adapter, plain), target)


def with_finite_numbers(value: Any) -> Any:
    """Return a value of mappings and lists with texts for numbers that JSON lacks: "NaN", "Infinity", "-Infinity"."""
    if issubclass(type(value), Mapping):
        return {name: with_finite_numbers(each) for name, each in value.items()}
    if issubclass(type(value), list | tuple):
        return [with_finite_numbers(each) for each in value]
    if isinstance(value, float) and not isfinite(value):
        return str(value).replace("inf", "Infinity").replace("nan", "NaN")
    return value


def without_metadata(kind: Any) -> Any:
    """Return a type without the metadata of ``Annotated``."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def kind_name(kind: Any) -> str:
    """Return the name of a type for error messages, without its metadata."""
    kind = without_metadata(kind)
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else f"{kind!r:.200}"


def _encoded(value: object) -> str:
    if is_model(value):
        return _adapter_of(type(value)).dump_json(value).decode()  # type: ignore[arg-type]  # a class is hashable
    if (msgspec := _msgspec_of(type(value))) is not None:
        return str(msgspec.json.encode(value).decode())
    text = _ENCODER.encode(value)
    text.encode()  # raises for a lone surrogate, which no broker can carry
    return text


def is_model(value: object) -> bool:
    """Return True for an instance of a dataclass or a pydantic model."""
    kind = type(value)
    return not isinstance(value, type) and (is_dataclass(kind) or hasattr(kind, "model_dump_json"))


def _jsonable(value: Any) -> object:
    """Return a value that `json` knows for one that it does not know.

    Raises:
        TypeError: No JSON value is known for it.
    """
    kind: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
    if issubclass(kind, type | Iterator) or hasattr(kind, "__await__"):
        raise TypeError(kind.__name__)
    if issubclass(kind, Mapping):
        return dict(value)
    if is_model(value):
        return _adapter_of(kind).dump_python(value, mode="json")  # type: ignore[arg-type]  # a class is hashable
    if (msgspec := _msgspec_of(kind)) is not None:
        return msgspec.to_builtins(value)
    from pydantic_core import to_jsonable_python  # slow to import

    return to_jsonable_python(value)


# JSON has no NaN and no infinity (RFC 8259, section 6): other programs reject a text that contains them.
_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=_jsonable)


@lru_cache(256)  # an adapter takes a hundred times as long to create as to use
def _adapter_of(kind: type) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter  # slow to import

    return TypeAdapter(kind)


def _msgspec_of(kind: object) -> Any:
    """Return the module msgspec if the type is one of its Structs, without importing it; else None."""
    msgspec = sys.modules.get("msgspec")
    return msgspec if msgspec is not None and isinstance(kind, type) and issubclass(kind, msgspec.Struct) else None


def _has_struct(kind: Any) -> bool:
    return _msgspec_of(kind) is not None or any(_has_struct(each) for each in get_args(kind))


def _unserialisable(value: object) -> tuple[str, object]:
    """Return the path to the innermost value without a JSON form, and that value."""
    path: list[str] = []
    while len(path) < _MAX_DEPTH:
        found = next((each for each in _children(value) if not _has_json_form(each[1])), None)
        if found is None:
            break
        name, value = found
        path.append(f"{name!s:.50}")
    return ".".join(path), value


def _has_json_form(value: object) -> bool:
    try:
        _encoded(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _children(value: Any) -> Iterable[tuple[object, object]]:
    kind: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
    if issubclass(kind, Mapping):
        return [(name, value[name]) for name in value]
    if issubclass(kind, list | tuple):
        return enumerate(value)  # pyright: ignore[reportUnknownVariableType]
    if issubclass(kind, type):
        return ()
    names = [it.name for it in fields(kind)] if is_dataclass(kind) else getattr(kind, "model_fields", ())
    return [(name, getattr(value, name)) for name in names]


def _reason(culprit: object) -> str:
    if isinstance(culprit, type):
        return f"the class {culprit.__name__}; give an instance of it"
    if hasattr(type(culprit), "__await__"):
        return f"a {type(culprit).__name__}; await it first"
    return f"a value of type {type(culprit).__name__}"


def _read(parse: Callable[[Message], object], target: str, message: Message) -> object:
    try:
        return parse(message)
    except _MisfitError as misfit:
        raise MessageFormatError(f"The body of {message} does not fit {target}: {misfit}.") from None


class _MisfitError(Exception):
    """The body does not fit; the text says where and why, without its values."""


def _parse_with_pydantic(adapter: "TypeAdapter[Any]", plain: type[object] | None, message: Message) -> object:
    from pydantic import ValidationError  # loaded with the adapter

    try:
        if plain is not None:
            return adapter.validate_python(message.get_body(plain))
        if isinstance(message, TextMessage | BytesMessage):
            return adapter.validate_json(_json_of(message))
        return adapter.validate_python(message.get_body(object))
    except ValidationError as error:
        raise _MisfitError(_problems(error)) from None


def _parse_struct(kind: Any, message: Message) -> object:
    msgspec = sys.modules["msgspec"]
    try:
        if isinstance(message, TextMessage | BytesMessage):
            return msgspec.json.decode(_json_of(message), type=kind)
        return msgspec.convert(message.get_body(object), kind)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at ")
        what = what if what.startswith(_SAFE_MSGSPEC) else "the value is not accepted"
        raise _MisfitError(f"{path.strip('`') or 'it'}: {what}") from None
    except msgspec.DecodeError:
        raise _MisfitError("it: Invalid JSON") from None


def _json_of(message: TextMessage | BytesMessage) -> str | bytes:
    """Return the JSON text of a body. Bytes without a charset in their content type are returned as UTF-8.

    With a charset, bytes are decoded. A byte order mark is ignored, as RFC 8259, section 8.1, allows.
    """
    if isinstance(message, TextMessage):
        return message.get_body(str).removeprefix(BYTE_ORDER_MARK)
    content = message.get_body(bytes)
    declared = message.properties.get(CONTENT_TYPE)
    charset = _CHARSET.search(declared) if isinstance(declared, str) else None
    if charset is None:
        return content.removeprefix(BOM_UTF8)
    try:
        return content.decode(charset[1]).removeprefix(BYTE_ORDER_MARK)
    except (LookupError, UnicodeError):
        raise _MisfitError(f"it: not in the charset {charset[1]:.50} of its content type") from None


def _problems(error: "ValidationError") -> str:
    """Return what is invalid and where, without the values, which may be secret."""
    problems = error.errors(include_input=False, include_url=False, include_context=False)
    texts = [f"{'.'.join(str(part) for part in p['loc']) or 'it'}: {_text(p)}"[:200] for p in problems[:_MAX_PROBLEMS]]
    return "; ".join(texts) + ("; …" if len(problems) > _MAX_PROBLEMS else "")


def _text(problem: Any) -> str:
    kind = problem["type"]
    if kind in _UNSAFE_PROBLEMS or kind not in _known_problems():
        return f"the value is not accepted ({kind})"
    return str(problem["msg"])


@lru_cache(1)
def _known_problems() -> frozenset[str]:
    """Return the names of the problems that pydantic defines. Validators write the texts of all other problems."""
    from pydantic_core.core_schema import ErrorType  # slow to import

    return frozenset(get_args(ErrorType))
