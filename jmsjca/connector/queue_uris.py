"""Destinations as texts: ``orders``, ``queue:orders``, ``topic:news``, and queue URIs with delivery options.

A queue URI, such as ``queue://manager/orders?expiry=5000&priority=7``, has the syntax of IBM's adapter for WebSphere
MQ. The queue manager may be empty: ``queue:///orders``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote

from jmsjca.destinations import Destination, Queue, destination
from jmsjca.errors import ConfigurationError, excerpt
from jmsjca.messages.message import DeliveryMode

__all__ = ["Target", "destination_of", "parse_target", "reads_uris"]

_URI = "queue://"
_IBM_MQ = "wmq:"
_AS_DEFAULT = {-1, -2}  # the queue's setting, and the connector's setting


@dataclass(frozen=True)
class Target:
    """A destination with the options of its URI; an option that is None is left to the broker.

    Attributes:
        destination: The destination.
        queue_manager: The name of the queue manager; empty if the text names none.
        time_to_live: Seconds until a message expires; 0 for never.
        priority: 0 to 9.
        delivery_mode: Whether messages are persistent.
        character_set: The number of the coded character set, for the property ``JMS_IBM_Character_Set``.
        encoding: The number of the encoding of numbers, for the property ``JMS_IBM_Encoding``.
        plain: True to send messages without properties, because the receiver knows no JMS.
    """

    destination: Destination
    queue_manager: str = ""
    time_to_live: float | None = None
    priority: int | None = None
    delivery_mode: DeliveryMode | None = None
    character_set: int | None = None
    encoding: int | None = None
    plain: bool = False

    def on(self, connection_url: str) -> Destination:
        """Return the destination for a connection: IBM MQ itself finds the queue manager, and sends without RFH2."""
        if not reads_uris(connection_url) or not (self.queue_manager or self.plain):
            return self.destination
        options = "?targetClient=1" if self.plain else ""
        return Queue(f"{_URI}{self.queue_manager}/{self.destination.name}{options}")


def reads_uris(connection_url: str) -> bool:
    """Return True if names of destinations may be queue URIs on a connection."""
    return connection_url.startswith(_IBM_MQ)


def destination_of(text: str) -> Destination:
    """Return the destination of a text; options of a URI are ignored.

    Raises:
        ConfigurationError: The text is empty or not such a URI.
    """
    return parse_target(text).destination


def parse_target(text: str) -> Target:
    """Return the destination and the options of a text.

    Args:
        text: A name, ``queue:name``, ``topic:name`` or a queue URI.

    Raises:
        ConfigurationError: The name is empty, or an option is unknown, occurs twice or has an invalid value.
    """
    stripped = text.strip()
    if stripped.startswith(_URI):
        return _parse_uri(stripped)
    kind, colon, name = stripped.partition(":")
    known = bool(colon) and kind in {"queue", "topic"}
    if not (name if known else stripped):
        raise ConfigurationError(f"{excerpt(text)!r} names no destination: write orders, queue:orders or topic:news.")
    return Target(destination(name, kind) if known else destination(stripped, "queue"))


def _parse_uri(uri: str) -> Target:
    path, _, query = uri.removeprefix(_URI).partition("?")
    manager, slash, name = path.partition("/")
    if not slash or not name:
        raise ConfigurationError(
            f"{excerpt(uri, 200)!r} names no queue: write queue://manager/queue or queue:///queue."
        )
    pairs = parse_qsl(query, keep_blank_values=True)
    values = {key.lower(): value for key, value in pairs}
    if len(values) != len(pairs):
        raise ConfigurationError(f"{excerpt(uri, 200)!r} has an option twice; remove one of them.")
    unknown = sorted(values.keys() - _OPTIONS.keys())
    if unknown:
        raise ConfigurationError(
            f"{excerpt(uri, 200)!r} has the unknown option {excerpt(unknown[0])!r}; there are {', '.join(_OPTIONS)}."
        )
    fields = {_OPTIONS[key][0]: _OPTIONS[key][1](uri, key, value) for key, value in values.items()}
    return Target(Queue(unquote(name)), unquote(manager), **fields)  # type: ignore[arg-type]  # by the table


def _number(uri: str, option: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise _invalid(uri, option, text, "a whole number") from None


def _expiry(uri: str, option: str, text: str) -> float | None:
    number = _number(uri, option, text)
    if number in _AS_DEFAULT:
        return None
    if number < 0:
        raise _invalid(uri, option, text, "milliseconds, 0 for never, or -1 or -2 for the default")
    return number / 1000


def _priority(uri: str, option: str, text: str) -> int | None:
    number = _number(uri, option, text)
    if number in _AS_DEFAULT:
        return None
    if number not in range(10):
        raise _invalid(uri, option, text, "0 to 9, or -1 or -2 for the default")
    return number


def _persistence(uri: str, option: str, text: str) -> DeliveryMode | None:
    number = _number(uri, option, text)
    if number in _AS_DEFAULT:
        return None
    if number not in set(DeliveryMode):
        raise _invalid(uri, option, text, "1 (non-persistent), 2 (persistent), or -1 or -2 for the default")
    return DeliveryMode(number)


def _target_client(uri: str, option: str, text: str) -> bool:
    if text not in {"0", "1"}:
        raise _invalid(uri, option, text, "0 (JMS) or 1 (plain WebSphere MQ)")
    return text == "1"


def _invalid(uri: str, option: str, value: str, allowed: str) -> ConfigurationError:
    return ConfigurationError(f"Option {option} of {excerpt(uri, 200)!r} is {excerpt(value)!r}; it is {allowed}.")


_Option = Callable[[str, str, str], object]
_OPTIONS: Mapping[str, tuple[str, _Option]] = {
    "expiry": ("time_to_live", _expiry),
    "priority": ("priority", _priority),
    "persistence": ("delivery_mode", _persistence),
    "ccsid": ("character_set", _number),
    "encoding": ("encoding", _number),
    "targetclient": ("plain", _target_client),
}
