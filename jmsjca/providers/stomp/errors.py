"""ERROR frames of brokers as JMS errors."""

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from jmsjca.errors import (
    ConnectionLostError,
    InvalidClientIDError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    JMSSecurityError,
    NotSupportedError,
)
from jmsjca.providers.common.network import LOGIN_REMEDY

__all__ = ["BrokerRefusedError", "error_text", "translating_errors"]

_SHOWN = 500  # characters of the broker's text

# STOMP has no error codes, only texts. The first pattern that matches decides.
_MEANINGS: tuple[tuple[re.Pattern[str], type[JMSError]], ...] = (
    (re.compile(r"InvalidDestination|No durable subscription"), InvalidDestinationError),
    (re.compile(r"selector|Couldn't create TopicSubscription", re.IGNORECASE), InvalidSelectorError),  # of ActiveMQ
    (re.compile(r"InvalidClientID|client ?id", re.IGNORECASE), InvalidClientIDError),
    (
        re.compile(
            r"security|authori[sz]|password|credential|access.refused|Bad CONNECT|Header (login|passcode)|denied",
            re.IGNORECASE,
        ),
        JMSSecurityError,
    ),
    (re.compile(r"destination|subscription|queue|address|not.found", re.IGNORECASE), InvalidDestinationError),
    (re.compile(r"version", re.IGNORECASE), NotSupportedError),
)


@contextmanager
def translating_errors(doing: str) -> Generator[None, None, None]:
    """Translate a refusal of the broker into the JMS error that it means.

    Args:
        doing: The refused operation, as the continuation of "cannot".
    """
    try:
        yield
    except BrokerRefusedError as error:
        for pattern, kind in _MEANINGS:
            if pattern.search(error.text):
                remedy = f". {LOGIN_REMEDY}" if kind is JMSSecurityError else ""
                raise kind(f"The broker says that this client cannot {doing}: {error.text}{remedy}") from error
        raise


def error_text(headers: Mapping[str, str], body: bytes) -> str:
    """Return the broker's reason as one printable line: it may repeat text that any client sent."""
    first = body[:_SHOWN].decode(errors="replace").strip().partition("\n")[0]
    text = ": ".join(dict.fromkeys(part for part in (headers.get("message", "").strip(), first) if part))
    return "".join(character if character.isprintable() else " " for character in text[:_SHOWN]) or "no reason given"


class BrokerRefusedError(ConnectionLostError):
    """An ERROR frame, which ends the connection.

    Attributes:
        receipt: The receipt that the refused frame requested; None if the broker does not name it.
        text: The reason that the broker gave.
        only_request: True if only one request was unanswered when it arrived.
    """

    def __init__(self, text: str, receipt: str | None, *, only_request: bool = False) -> None:
        super().__init__(f"The broker refused something and ended the connection: {text}")
        self.receipt = receipt
        self.text = text
        self.only_request = only_request
