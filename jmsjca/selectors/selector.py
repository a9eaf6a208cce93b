"""Message selectors: parsed, cached, and applied to messages."""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from jmsjca.messages import Message
from jmsjca.selectors.evaluation import Fields, compile_condition
from jmsjca.selectors.syntax import Expression, Identifier, In, IsNull, Like, children

__all__ = ["Selector"]


class Selector:
    """A message selector (JMS 3.1, section 3.8.1). Immutable and picklable; selectors of the same text are equal.

    Args:
        text: For instance ``region = 'EU' AND JMSPriority > 3``; empty or blank selects everything.

    Raises:
        InvalidSelectorError: The text is not a selector; the message has the position and the remedy.

    Attributes:
        text: The text of the selector.
        expression: The syntax tree; None for an empty selector, which selects everything.
        identifiers: The names of headers and properties in the selector.
    """

    __slots__ = ("_evaluate", "expression", "identifiers", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.expression = _parse(text)
        self.identifiers = frozenset(_names(self.expression))
        self._evaluate = compile_condition(self.expression) if self.expression else _select_all

    @staticmethod
    def parse(text: str) -> "Selector":
        """Return the selector of a text. The 512 most recent selectors are cached.

        Args:
            text: For instance ``region = 'EU' AND JMSPriority > 3``; empty or blank selects everything.

        Raises:
            InvalidSelectorError: The text is not a selector; the message has the position and the remedy.
        """
        return _cached_selector(text)

    def evaluate(self, values: Mapping[str, Any]) -> bool | None:
        """Evaluate the selector (JMS 3.1, sections 3.8.1.2 and 3.8.1.3).

        Args:
            values: Values by the names of headers and properties; a missing name is a property that is not set.
                ``JMSDeliveryMode`` is "PERSISTENT" or "NON_PERSISTENT", ``JMSTimestamp`` is in milliseconds.

        Returns:
            True, False, or None for unknown. Only True selects.
        """
        return self._evaluate(values)

    def matches(self, message: Message) -> bool:
        """Return True if the selector selects a message."""
        return self._evaluate(_MessageFields(message)) is True

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Selector {self.text!r:.200}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selector) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[Callable[[str], "Selector"], tuple[str]]:
        return Selector.parse, (self.text,)


_cached_selector = lru_cache(512)(Selector)


def _parse(text: str) -> Expression | None:
    if text == "":
        return None
    from jmsjca.selectors.parser import parse  # loads lark, needed only for non-empty selectors

    return parse(text)


def _select_all(_: Fields) -> bool:
    return True


def _names(expression: Expression | None) -> Iterator[str]:
    nodes = [expression] if expression else []
    for node in nodes:
        nodes += children(node)
        if isinstance(node, Identifier | Like | In | IsNull):
            yield node.name


_HEADERS: dict[str, Callable[[Message], object]] = {
    "JMSCorrelationID": lambda message: message.correlation_id,
    "JMSDeliveryMode": lambda message: message.delivery_mode.name,
    "JMSMessageID": lambda message: message.message_id,
    "JMSPriority": lambda message: message.priority,
    "JMSTimestamp": lambda message: message.timestamp and round(message.timestamp.timestamp() * 1000),
    "JMSType": lambda message: message.type,
    "JMSXDeliveryCount": lambda message: message.delivery_count or None,
}


class _MessageFields:
    """The headers and properties of a message under the names that selectors use."""

    __slots__ = ("_message",)

    def __init__(self, message: Message) -> None:
        self._message = message

    def get(self, name: str) -> object:
        """Return the value of a header or property; None if it is not set."""
        header = _HEADERS.get(name)
        return header(self._message) if header else self._message.properties.get(name)
