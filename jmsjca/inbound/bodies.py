"""The body of a message as the type that a handler asks for."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from jmsjca.errors import ConfigurationError, MessageFormatError
from jmsjca.messages import BytesMessage, Message, TextMessage

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

__all__ = ["body_as"]

_SHOWN = 5


def body_as(hint: Any, parameter: str) -> Callable[[Message], object]:
    """Make what converts the body of a message.

    Args:
        hint: `str` or `bytes`, or one of them ``| None``, for a body of that type; anything else that pydantic
            validates (a model, a dataclass, ``dict[str, int]``) for a text or bytes message that holds JSON, a map or a
            stream message.
        parameter: Who asks, for errors.

    Raises:
        ConfigurationError: Nothing can be converted to such a type.
    """
    for kind in (str, bytes):
        if hint in (kind, kind | None):
            return partial(_plain, kind, hint is not kind)
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415  # loaded for those who ask for it
    from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError  # noqa: PLC0415

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hint)
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise ConfigurationError(
            f"The parameter {parameter!r} of a handler asks for {hint!r:.200}, and no body can be converted to that."
        ) from error

    def convert(message: Message) -> object:
        """Convert a body; what does not fit is a failure of the handler."""
        try:
            return _validated(adapter, message)
        except ValidationError as error:
            raise MessageFormatError(f"The body of {message} does not fit {parameter!r}: {_problems(error)}.") from None

    return convert


def _plain(kind: type[str] | type[bytes], optional: bool, message: Message) -> object:
    return None if optional and message.body is None else message.get_body(kind)


def _validated(adapter: "TypeAdapter[Any]", message: Message) -> object:
    if isinstance(message, TextMessage):
        return adapter.validate_json(message.get_body(str))
    if isinstance(message, BytesMessage):
        return adapter.validate_json(message.get_body(bytes))
    return adapter.validate_python(message.get_body(object))


def _problems(error: "ValidationError") -> str:
    """What is wrong and where, without the values, which may be secret."""
    problems = error.errors(include_input=False, include_url=False, include_context=False)
    told = [f"{'.'.join(str(part) for part in p['loc']) or 'it'}: {p['msg']}"[:200] for p in problems[:_SHOWN]]
    return "; ".join(told) + ("; …" if len(problems) > _SHOWN else "")
