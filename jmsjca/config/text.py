"""Checks for text that is sent to a broker."""

from jmsjca.errors import JMSError

__all__ = ["check_text", "check_unicode"]


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
