"""The exception of a handler as text, for those who look at the message later."""

import traceback
from dataclasses import dataclass
from typing import Self

__all__ = ["Failure"]

_LONGEST_MESSAGE = 1_000
_LONGEST_TRACE = 10_000
_FRAMES = 50


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a handler failed; no longer than is useful.

    Attributes:
        error_class: The exception's class, with its module.
        message: Its text; at most 1,000 characters from the beginning.
        stack_trace: Where it was raised, with its causes; at most 10,000 characters from the end.
    """

    error_class: str
    message: str
    stack_trace: str

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """Write an exception down, whatever its class does when asked for its text."""
        kind = type(error)
        return cls(
            _sendable(f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."))[:_LONGEST_MESSAGE],
            _text(error)[:_LONGEST_MESSAGE],
            _trace(error)[-_LONGEST_TRACE:],
        )


def _text(error: BaseException) -> str:
    try:
        return _sendable(str(error))
    except Exception as failed:  # noqa: BLE001  # its class is the application's
        return f"(its text cannot be had: {type(failed).__name__})"


def _trace(error: BaseException) -> str:
    try:
        return _sendable("".join(traceback.format_exception(error, limit=-_FRAMES)))
    except Exception as failed:  # noqa: BLE001  # likewise
        return f"(its stack trace cannot be had: {type(failed).__name__})"


def _sendable(text: str) -> str:
    """Replace what no protocol can carry, or the message could not be moved."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", r"\x00")
