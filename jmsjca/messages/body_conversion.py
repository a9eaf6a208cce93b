"""Conversion of plain bodies to messages: text, bytes, mappings, pydantic models and dataclasses."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from jmsjca.errors import MessageFormatError
from jmsjca.messages.bytes_message import BytesMessage
from jmsjca.messages.map_message import MapMessage
from jmsjca.messages.message import Message, TextMessage

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["Body", "message_from_body"]


class Model(Protocol):
    """A pydantic model."""

    def model_dump_json(self) -> str:
        """Return the model as JSON."""
        ...


class DataclassInstance(Protocol):
    """An instance of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


Body = str | bytes | bytearray | Mapping[str, object] | Model | DataclassInstance
"""A body that a message is made of by `message_from_body`."""


def message_from_body(body: object) -> Message:
    """Return a new message with a body.

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
    if is_dataclass(body) or hasattr(type(body), "model_dump_json"):
        return TextMessage(_json(body))
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
    type(None): Message,
}


def _json(body: Any) -> str:
    from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError  # noqa: PLC0415  # slow to import
    from pydantic_core import PydanticSerializationError  # noqa: PLC0415

    try:
        return _adapter_of(type(body)).dump_json(body).decode()  # type: ignore[arg-type]  # a class is hashable
    except (PydanticSchemaGenerationError, PydanticUserError, PydanticSerializationError) as error:
        raise MessageFormatError(
            f"The fields of {type(body).__name__} have no JSON form ({type(error).__name__}). Send text or a mapping."
        ) from error


@lru_cache(256)  # an adapter takes a hundred times as long to create as to use
def _adapter_of(kind: type) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter  # noqa: PLC0415

    return TypeAdapter(kind)
