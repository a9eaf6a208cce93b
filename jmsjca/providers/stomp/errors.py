"""What the ERROR frames of the brokers mean."""

import re
from collections.abc import Generator
from contextlib import contextmanager

from jmsjca.errors import (
    InvalidClientIDError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    JMSSecurityError,
    NotSupportedError,
)
from jmsjca.providers.stomp.receipts import RefusedError

__all__ = ["explained"]

# Brokers have no codes in STOMP, only texts; the first that fits counts.
_MEANINGS: tuple[tuple[re.Pattern[str], type[JMSError]], ...] = (
    (re.compile(r"InvalidDestination|No durable subscription"), InvalidDestinationError),
    (re.compile(r"selector", re.IGNORECASE), InvalidSelectorError),
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
def explained(doing: str) -> Generator[None, None, None]:
    """Turn the refusal of a broker into the error that it means.

    Args:
        doing: What was tried, as the continuation of "cannot".
    """
    try:
        yield
    except RefusedError as error:
        for pattern, kind in _MEANINGS:
            if pattern.search(error.text):
                raise kind(f"The broker says that this client cannot {doing}: {error.text}") from error
        raise
