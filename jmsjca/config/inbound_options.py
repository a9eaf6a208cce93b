"""The options of endpoints that are no fields of the activation spec, and the sources that options come from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from jmsjca.config.option_names import own_options
from jmsjca.config.url import ConnectionURL
from jmsjca.errors import InvalidOptionError
from jmsjca.messages.shown import shown

__all__ = ["InboundOptions", "merge_options"]

_LONGEST = 86_400_000  # milliseconds: a day


@dataclass(frozen=True, slots=True)
class InboundOptions:
    """What JMSJCA's options say of an endpoint, beside the fields of its spec that they replace.

    Attributes:
        redelivery_redirect: True to move messages as they are, not as copies with additional properties.
        receive_timeout: Seconds that a receiver of mode "sync" waits for a message before it looks around; a day if the
            option is 0, which is for ever in JMS.
        minimal_reconnect_logging: True to tell of a broken connection once, not at each attempt.
        minimal_reconnect_logging_ds: True to do so where another node has the durable subscription.
    """

    redelivery_redirect: bool = False
    receive_timeout: float = 10.0
    minimal_reconnect_logging: bool = False
    minimal_reconnect_logging_ds: bool = False

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        """Read them.

        Args:
            options: All options in force; JMSJCA's in their own spelling.

        Raises:
            InvalidOptionError: A value cannot be used.
        """
        return cls(
            redelivery_redirect=options.get("JMSJCA.redeliveryredirect", "").lower() == "true",
            receive_timeout=_seconds("JMSJCA.receivetimeout", options.get("JMSJCA.receivetimeout") or "10000"),
            minimal_reconnect_logging=options.get("JMSJCA.minimalreconnectlogging") == "1",
            minimal_reconnect_logging_ds=options.get("JMSJCA.minimalreconnectloggingds") == "1",
        )


def merge_options(*options: Mapping[str, str], url: str | None) -> dict[str, str]:
    """Bring options together; of an option that is given twice the later value counts, and JMSJCA's in a URL last.

    Args:
        options: JMSJCA's in their own spelling.
        url: The connection URL that is used, if any.

    Raises:
        InvalidURLError: The URL does not parse.
        InvalidOptionError: The URL has an option that begins with ``JMSJCA.`` and does not exist.
    """
    merged = {name: value for some in options for name, value in some.items()}
    return merged | (own_options(ConnectionURL.parse(url).query) if url else {})


def _seconds(name: str, text: str) -> float:
    milliseconds = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(_LONGEST)) else _LONGEST + 1
    if milliseconds > _LONGEST:
        raise InvalidOptionError(f"{name} is a number of milliseconds up to a day, not {shown(text)!r}.")
    return (milliseconds or _LONGEST) / 1000
