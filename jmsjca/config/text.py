"""Texts that can go to a broker."""

from jmsjca.errors import JMSError

__all__ = ["check_text", "check_unicode"]


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
