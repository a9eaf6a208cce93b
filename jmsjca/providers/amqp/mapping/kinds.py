"""The types of messages, and the numbers by which annotations tell them."""

from jmsjca.messages import BytesMessage, MapMessage, Message, ObjectMessage, StreamMessage, TextMessage

__all__ = ["JAVA_NULL", "KIND", "KINDS", "kind_of"]

KIND = "x-opt-jms-msg-type"
KINDS: dict[int, type[Message]] = {
    0: Message,
    1: ObjectMessage,
    2: MapMessage,
    3: BytesMessage,
    4: StreamMessage,
    5: TextMessage,
}
JAVA_NULL = b"\xac\xed\x00\x05p"
"""What Java writes for an object message that holds none."""

_NUMBERS = {kind: number for number, kind in KINDS.items()}


def kind_of(message: Message) -> int:
    """The number of the type of a message."""
    number = _NUMBERS.get(type(message))
    return _number_of_base(message) if number is None else number


def _number_of_base(message: Message) -> int:
    """Applications may have types of their own."""
    return next(_NUMBERS[base] for base in type(message).__mro__ if base in _NUMBERS)
