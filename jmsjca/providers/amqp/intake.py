"""Takes messages out of proton, whole and within bounds, while they arrive."""

from typing import NamedTuple

from jmsjca.providers.amqp.proton_calls import ABORTED, Buffer, Pointer, advance, current, is_partial, receiving
from jmsjca.providers.amqp.proton_deliveries import release, settle

__all__ = ["Excess", "Intake", "Taken"]


class Excess(Exception):  # noqa: N818  # it is no failure of ours
    """More came than may.

    Args:
        condition: What AMQP calls it.
        what: What came.
        remedy: What to do about it.
    """

    def __init__(self, condition: str, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.condition = condition
        self.what = what
        self.remedy = remedy


class Taken(NamedTuple):
    """What was there.

    Args:
        deliveries: Those that are complete.
        messages: The encoded messages of these.
        aborted: How many the broker gave up in the middle.
    """

    deliveries: list[Pointer]
    messages: list[bytes]
    aborted: int


class Intake:
    """Belongs on the engine's thread.

    Args:
        link: Proton's receiver.
        buffer: For bytes on their way.
        message_bytes: The largest message that is taken.
    """

    def __init__(self, link: Pointer, buffer: Buffer, message_bytes: int) -> None:
        self._link = link
        self._buffer = buffer
        self._receive = receiving(link, buffer)
        self._message_bytes = message_bytes
        self._too_long = min(buffer.size, message_bytes + 1)  # for what is taken at once
        self._begun = bytearray()

    def take(self, most: int) -> Taken:
        """Take what is there.

        Args:
            most: How many messages may come.

        Raises:
            Excess: A message is too large, or there are too many.
        """
        link, receive, content, too_long = self._link, self._receive, self._buffer.content, self._too_long
        deliveries: list[Pointer] = []
        messages: list[bytes] = []
        aborted = 0
        while delivery := current(link):
            size = receive()
            if 0 <= size < too_long and not self._begun and not is_partial(delivery):  # as nearly all come
                encoded: bytes | None = content[:size]  # a copy
            elif size == ABORTED:
                self._drop(delivery)
                aborted += 1
                continue
            else:
                encoded = self._whole(delivery, size)
            if encoded is None:
                break
            if len(deliveries) >= most:
                raise Excess("amqp:link:transfer-limit-exceeded", "More than was asked for")
            advance(link)
            deliveries.append(delivery)
            messages.append(encoded)
        return Taken(deliveries, messages, aborted)

    def decline(self) -> int:
        """Let go what comes, by name, be it complete or not: the link is at its end. Tells how much that was."""
        declined = 0
        while delivery := current(self._link):
            while self._receive() > 0:
                pass
            release([delivery])
            declined += 1
        return declined

    def _drop(self, delivery: Pointer) -> None:
        self._begun.clear()
        settle(delivery)

    def _whole(self, delivery: Pointer, size: int) -> bytes | None:
        """The message, of which so many bytes are in the buffer; None as long as it is not complete."""
        while size > 0:
            self._begun += self._buffer.view[:size]
            self._check(len(self._begun))
            size = self._receive()
        if is_partial(delivery):
            return None
        encoded = bytes(self._begun)
        self._begun.clear()
        return encoded

    def _check(self, size: int) -> None:
        if size > self._message_bytes:
            what = f"A message of more than {self._message_bytes} bytes"
            remedy = "; raise Limits.message_bytes, or remove it at the broker"
            raise Excess("amqp:link:message-size-exceeded", what, remedy)
