"""Texts that can go to a broker."""

from jmsjca.errors import JMSError

__all__ = ["check_unicode"]


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
