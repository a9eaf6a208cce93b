"""Log records of one line each: control characters of names, ids and errors are escaped, long texts are shortened."""

import logging
from types import TracebackType

__all__ = ["exc_info_of", "get_logger", "one_line"]

_FIELD = 1024  # characters of one value
_RECORD = 4096  # characters of the text of a record


class _OneLine(logging.Filter):
    """Rewrites the text of a record that is not printable or too long. No record is dropped.

    Names, ids and errors may come from other programs: without this, a line break in one of them forges a record.
    Records that are printable keep their template and their arguments, by which tools group them.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Shorten each long argument, and escape the text if it is needed."""
        if isinstance(record.args, tuple):
            record.args = tuple(each[:_FIELD] if isinstance(each, str) else each for each in record.args)
        try:
            text = record.getMessage()
        except Exception:  # noqa: BLE001  # the text of some error cannot be made, which handlers report
            return True
        if not text.isprintable() or len(text) > _RECORD:
            record.msg, record.args = one_line(text, _RECORD), ()
        return True


_ONE_LINE = _OneLine()


def get_logger(name: str) -> logging.Logger:
    """Return the logger of a name, which writes records of one line.

    Args:
        name: The name, as of `logging.getLogger`.
    """
    logger = logging.getLogger(name)
    logger.addFilter(_ONE_LINE)  # once, however often it is added
    return logger


def exc_info_of(error: BaseException) -> tuple[type[BaseException], BaseException, TracebackType | None]:
    """Return the argument ``exc_info`` for an exception: `logging` tests an exception object itself for its truth."""
    return type(error), error, error.__traceback__


def one_line(text: str, limit: int = _FIELD) -> str:
    r"""Return a text with its control characters escaped, a newline as ``\n``.

    Args:
        text: The text.
        limit: The number of characters after which it is cut.
    """
    if text.isprintable() and len(text) <= limit:
        return text
    escaped = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text[:limit])
    return escaped if len(text) <= limit and len(escaped) <= limit else f"{escaped[: limit - 1]}…"
