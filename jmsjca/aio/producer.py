"""Producers for asyncio."""

import asyncio
from functools import partial
from typing import Unpack

from jmsjca import outbound
from jmsjca.aio.base import AsyncCloseable, SingleThreadExecutor, run_in_thread
from jmsjca.destinations import Destination
from jmsjca.messages.converters import Body
from jmsjca.messages.message import Message
from jmsjca.outbound.producer import DeliveryFields

__all__ = ["Producer"]


class Producer(AsyncCloseable):
    """A `jmsjca.MessageProducer` for asyncio. It is lightweight and need not be closed.

    `Session.create_producer` creates it.

    Args:
        wrapped: The blocking producer.
        executor: The thread of the session.
    """

    def __init__(self, wrapped: outbound.MessageProducer, executor: SingleThreadExecutor) -> None:
        self._wrapped = wrapped
        self._executor = executor

    async def send(
        self,
        message: Message | Body,
        destination: Destination | None = None,
        **options: Unpack[DeliveryFields],
    ) -> None:
        """Send a message, as `jmsjca.MessageProducer.send` does. The message may be changed and sent again afterwards.

        If the await is cancelled, the message may or may not be sent. Do not use it again; the session stays usable.

        Args:
            message: The message, or a body for one, as in `jmsjca.MessageProducer.send`.
            destination: The destination; required if the producer has none, refused if it has one.
            **options: See `jmsjca.outbound.producer.DeliveryFields`.

        Raises:
            InvalidDestinationError: There is no destination, or there are two; or it is a deleted temporary one.
            MessageFormatError: The priority is outside 0 to 9, a time is negative or too large, or no message can hold
                the body.
            ArgumentTypeError: A header of the message has a wrong type, or there is no such option.
            IllegalStateError: The producer or its session is closed.
            JMSError: The broker refuses the message.
        """
        send = partial(
            self._wrapped.send,
            message,
            destination,
            on_completion=None,
            **options,
        )
        await self._executor.run(send)

    async def send_async(
        self,
        message: Message | Body,
        destination: Destination | None = None,
        **options: Unpack[DeliveryFields],
    ) -> "asyncio.Future[Message]":
        """Begin to send a message, as `jmsjca.MessageProducer.send_async` does, without waiting for the broker.

        ::

            sent = [await producer.send_async(message) for message in messages]
            await asyncio.gather(*sent)

        Args:
            message: The message, or a body as for `send`. You may change it and send it again once the await returns.
            destination: The destination; required if the producer has none, refused if it has one.
            **options: See `jmsjca.outbound.producer.DeliveryFields`.

        Returns:
            A future of the message. Await it for the outcome: it raises `TransactionInDoubtError` if the connection was
            lost. Cancelling it does not affect the send.

        Raises:
            JMSError: As `send`, if the message is refused before it is sent.
        """
        begin = partial(
            self._wrapped.send_async,
            message,
            destination,
            on_completion=None,
            **options,
        )
        return asyncio.wrap_future(await self._executor.run(begin))

    async def close(self) -> None:
        """Close the producer. Messages sent in an open transaction stay in the transaction. Idempotent."""
        await run_in_thread(self._wrapped.close)
