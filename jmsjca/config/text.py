"""Checks for text that is sent to a broker, and suggestions for misspelled names."""

import difflib
from collections.abc import Mapping

from jmsjca.errors import JMSError

__all__ = ["check_text", "check_unicode", "did_you_mean"]

_MAX_COMPARED = 100


def check_unicode(text: str | None, what: str, kind: type[JMSError]) -> None:
    """Refuse what no protocol can write.

    Args:
        text: The text; it is not shown, for it may be a password.
        what: What it is, to begin the message with.
        kind: What is raised.

    Raises:
        JMSError: It holds half of a surrogate pair.
    """
    try:
        (text or "").encode()
    except UnicodeEncodeError:  # without its cause, which shows the text
        raise kind(f"{what} holds half of a surrogate pair, which is no Unicode text.") from None


def check_text(text: str | None, what: str, kind: type[JMSError]) -> None:
    """Refuse what would be another text where it arrives: STOMP's frames and the strings of C end with NUL.

    Args:
        text: The text; it is not shown, for it may be a password.
        what: What it is, to begin the message with.
        kind: What is raised.

    Raises:
        JMSError: It holds NUL, or half of a surrogate pair.
    """
    check_unicode(text, what, kind)
    if "\0" in (text or ""):
        raise kind(f"{what} holds NUL (U+0000), and would end there on its way to the broker: leave it out.")


def did_you_mean(name: str, known: Mapping[str, str]) -> str:
    """Give the nearest name, or else all of them, in parentheses.

    Args:
        name: The unknown name, in lower case.
        known: The names that there are, by their lower case.
    """
    near = difflib.get_close_matches(name[:_MAX_COMPARED], known, 1)
    return f"(did you mean {known[near[0]]}?)" if near else f"(there are {', '.join(known.values())})"
