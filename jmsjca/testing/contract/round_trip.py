"""A message as it comes out of a queue."""

from __future__ import annotations

from jmsjca.messages import Message
from jmsjca.spi import Delivery
from jmsjca.testing.contract.harness import Harness

__all__ = ["again", "through"]


def through(harness: Harness, message: Message) -> Message:
    """Send a message to a queue, and receive it."""
    queue = harness.queue()
    harness.send_messages(queue, message)
    [delivery] = harness.gather(harness.connection.consumer(queue), 1)
    return delivery.message


def again(harness: Harness, message: Message) -> tuple[Message, Delivery]:
    """Send a message to a queue, receive it, roll it back, and receive it again: as it was first, and that delivery."""
    queue = harness.queue()
    harness.send_messages(queue, message)
    consumer = harness.connection.consumer(queue)
    [first] = harness.gather(consumer, 1)
    message = first.message
    harness.holding([first]).rollback()
    [second] = harness.gather(consumer, 1)
    return message, second
