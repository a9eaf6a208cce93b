"""The text message: a `str` as a body."""

from typing import Any

from jmsjca.errors import MessageFormatError
from jmsjca.messages.message import Message

__all__ = ["TextMessage"]


class TextMessage(Message):
    """A message whose body is a `str`."""

    __slots__ = ()

    def _checked(self, body: Any) -> Any:
        if body is not None and not isinstance(body, str):
            raise MessageFormatError(f"A TextMessage holds str, not {type(body).__name__}.")
        return body

    _decoded = _checked  # without a call between them
