"""Producers for asyncio."""

from functools import partial

from jmsjca import outbound
from jmsjca.aio.base import SingleThreadExecutor
from jmsjca.destinations import Destination
from jmsjca.messages import DeliveryMode, Message

__all__ = ["Producer"]


class Producer:
    """Made by `Session.create_producer`. It is light, and need not be closed.

    Args:
        wrapped: The producer beneath, which blocks.
        executor: The thread of its session.
    """

    def __init__(self, wrapped: outbound.MessageProducer, executor: SingleThreadExecutor) -> None:
        self._wrapped = wrapped
        self._executor = executor

    async def send(
        self,
        message: Message,
        destination: Destination | None = None,
        *,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
        time_to_live: float | None = None,
        delivery_delay: float | None = None,
    ) -> None:
        """Send a message, as `jmsjca.MessageProducer.send` does; it may be changed and sent again afterwards.

        If the await is cancelled the message is sent or not; it must not be used again, and the session is as before.

        Args:
            message: What to send.
            destination: Where to; needed if the producer has no destination, refused if it has.
            delivery_mode: Whether it must survive the broker's restart; None for persistent.
            priority: 0 to 9; None for 4, which is normal.
            time_to_live: Seconds until it expires; 0 or None for never.
            delivery_delay: Seconds until it may be delivered.

        Raises:
            InvalidDestinationError: No destination, or two; or a temporary one that is gone.
            MessageFormatError: A priority outside 0 to 9, or a time that makes no sense.
            IllegalStateError: The session is closed.
            JMSError: The broker refuses it.
        """
        send = partial(
            self._wrapped.send,
            message,
            destination,
            delivery_mode=delivery_mode,
            priority=priority,
            time_to_live=time_to_live,
            delivery_delay=delivery_delay,
        )
        await self._executor.run(send)
