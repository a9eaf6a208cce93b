"""Checks for text that is sent to a broker, and suggestions for misspelled names."""

import difflib
from collections.abc import Mapping

from jmsjca.errors import JMSError

__all__ = ["check_text", "check_unicode", "did_you_mean"]

_MAX_COMPARED = 100


def check_unicode(text: str | None, what: str, kind: type[JMSError]) -> None:
    """Raise an error for text that no protocol can encode.

    Args:
        text: The text. It never appears in the error message, because it may be a password.
        what: The noun that begins the error message.
        kind: The class of the error.

    Raises:
        JMSError: The text holds half of a surrogate pair.
    """
    try:
        (text or "").encode()
    except UnicodeEncodeError:  # without its cause, which contains the text
        raise kind(f"{what} holds half of a surrogate pair, which is no Unicode text.") from None


def check_text(text: str | None, what: str, kind: type[JMSError]) -> None:
    """Raise an error for text that would be truncated in transit: STOMP frames and C strings end with NUL.

    Args:
        text: The text. It never appears in the error message, because it may be a password.
        what: The noun that begins the error message.
        kind: The class of the error.

    Raises:
        JMSError: The text holds NUL, or half of a surrogate pair.
    """
    check_unicode(text, what, kind)
    if "\0" in (text or ""):
        raise kind(f"{what} holds NUL (U+0000), and would end there on its way to the broker: leave it out.")


def did_you_mean(name: str, known: Mapping[str, str]) -> str:
    """Return the known name nearest to an unknown one, or else all known names, as a remark in parentheses.

    Args:
        name: The unknown name, in lower case.
        known: The known names as the remark shows them, keyed by their lower case form.
    """
    near = difflib.get_close_matches(name[:_MAX_COMPARED], known, 1)
    return f"(did you mean {known[near[0]]}?)" if near else f"(there are {', '.join(known.values())})"
