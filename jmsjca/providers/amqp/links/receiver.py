"""Receiving links: credit, transfers read whole and within bounds, settlement."""

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from proton import Condition

from jmsjca.errors import ConnectionLostError, JMSError, ResourceAllocationError
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.engine.proton_ffi import (
    ABORTED,
    RECEIVER_SETTLES_FIRST,
    SENDER_UNSETTLED,
    Buffer,
    Pointer,
    Settle,
    advance,
    current,
    is_partial,
    pointer_to,
    receiving,
    release,
    settle,
)
from jmsjca.providers.amqp.links.credit import AnsweredCredit, Credit, DrainedCredit
from jmsjca.providers.amqp.links.link import LinkEnd
from jmsjca.providers.amqp.links.source import Source

__all__ = ["Arrivals", "CreditedLink", "Excess", "Intake", "ReceivingLink", "Taken"]

_REMINDER = 0.25  # seconds until the broker is asked again for the answer to a drain

# So many messages may come unasked: where a broker is known to miscount, and where it has not heard of the link's end.
_MOST_MORE = 1000


class CreditedLink(LinkEnd):
    """Everything but `attach` and `stop` belongs on the engine's thread.

    Args:
        engine: The connection.
        name: Where from.
        reply_timeout: Seconds to wait for the broker's answers.
    """

    def __init__(self, engine: Engine, name: str, reply_timeout: float) -> None:
        super().__init__(engine, f"the receiver from {name}", reply_timeout)
        self._name = name
        self._asked_for: int = 0
        self._credit: Credit | None = None  # made with the link

    def grant(self, credit: int) -> None:
        """Ask for so many more messages."""
        if credit_of := self._usable():
            self._asked_for += credit
            credit_of.grant(credit)

    def stop(self) -> bool:
        """Ask for no more, and wait until what was on its way is here. Not on the engine's thread.

        Returns:
            True if the broker surely has no more.
        """
        answer = self._engine.call(lambda: credit.stop() if (credit := self._usable()) else _ended())
        try:
            return self._await_stop(answer)
        except JMSError as error:
            if self.error is None or isinstance(error.__cause__, TimeoutError):  # which is why it has ended
                raise
            return False  # it has ended meanwhile, and why is told by `Arrivals.broken`

    def _await_stop(self, answer: "Future[bool]") -> bool:
        for _ in range(int(self._reply_timeout / _REMINDER)):
            with suppress(TimeoutError):
                return answer.result(_REMINDER)
            self._engine.call(lambda: credit.remind() if (credit := self._usable()) else None)
        return self._engine.wait(answer, _REMINDER, f"the end of what was on its way from {self._name}")

    def round_trip(self) -> "Future[bool]":
        """Done when the broker has handled all that was written before."""
        credit = self._usable()
        return credit.confirm() if credit else _ended(self.error)

    def revoke(self) -> None:
        """Ask for no more, without waiting: the connection closes."""
        if self._usable():
            self._link.flow(-max(self._link.credit - self._link.queued, 0))  # below zero would be some four billions

    def on_flow(self) -> None:
        """The broker told its view of the credit."""
        if credit := self._usable():
            credit.answered()

    def _forget(self) -> None:
        super()._forget()
        self._credit = None

    def _usable(self) -> Credit | None:
        return self._credit if self.error is None and not self._ended.done() else None


def _ended(error: JMSError | None = None) -> "Future[bool]":
    """The answer where nobody answers."""
    future: Future[bool] = Future()
    if error is None:
        future.set_result(False)
    else:
        future.set_exception(error)
    return future


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


class Arrivals(Protocol):
    """Who is given what arrives. Called on the engine's thread."""

    def arrived(self, first: int, messages: Sequence[bytes]) -> None:
        """Messages are complete: the handle of the first, those behind it follow; and the encoded messages."""
        ...

    def credited(self, more: int) -> None:
        """The credit changed by so much, otherwise than by `ReceivingLink.grant` and what arrived."""
        ...

    def missed(self) -> None:
        """Less comes than was asked for; that was told by `credited`."""
        ...

    def broken(self, error: JMSError) -> None:
        """Nothing more will come."""
        ...


class ReceivingLink(CreditedLink):
    """A link from one source. Everything but `attach` and `stop` belongs on the engine's thread.

    Args:
        engine: The connection.
        source: Where from.
        arrivals: Who is given what arrives.
        message_bytes: The largest message that is taken.
        reply_timeout: Seconds to wait for the broker's answers.
        drains: True if the broker understands drain.
    """

    def __init__(
        self,
        engine: Engine,
        source: Source,
        arrivals: Arrivals,
        message_bytes: int,
        reply_timeout: float,
        *,
        drains: bool,
    ) -> None:
        source.check()
        super().__init__(engine, source.address.name, reply_timeout)
        self._drains = drains
        self._source = source
        self._arrivals = arrivals
        self._message_bytes = message_bytes
        self._intake: Intake
        self._unsettled: dict[int, Pointer] = {}
        self._received = 0
        self._declined = 0
        self._most_unasked = 0 if drains else _MOST_MORE  # RabbitMQ miscounts when credit and messages cross

    def settle(self, handles: Sequence[int], update: Settle) -> None:
        """Give deliveries one state, and settle them.

        Raises:
            JMSError: The link has ended, and the broker has taken the deliveries back.
        """
        if self.error is not None:
            raise self.error
        self._settle(handles, update)

    def settle_each(self, states: Sequence[tuple[int, Settle]]) -> None:
        """Give deliveries a state each, and settle them; those that the broker has taken back need none."""
        for handle, update in states:
            self._settle([handle], update)

    def _settle(self, handles: Sequence[int], update: Settle) -> None:
        unsettled = self._unsettled
        update([unsettled.pop(handle) for handle in handles if handle in unsettled])

    def shut(self) -> None:
        """Close our end; only detach from a durable subscription, so that the broker keeps it."""
        if self._credit is not None:
            self._credit.end(None)
        if self._source.lasting and not self._ended.done():
            self._ended.set_result(None)
            self._link.detach()
        else:
            super().shut()

    def on_delivery(self, delivery: Pointer) -> bool:
        """Messages, or parts of them. Of those that are complete the broker has nothing to say."""
        del delivery
        self._take()
        return True

    def _take(self) -> None:
        credit = self._usable()
        if credit is None:
            self._decline()
            return
        try:
            self._note(self._intake.take(self._allowed()), credit)
        except Excess as excess:
            self._refuse(excess)

    def _allowed(self) -> int:
        """How many messages may still come."""
        return self._asked_for + self._most_unasked - self._received

    def _note(self, taken: Taken, credit: Credit) -> None:
        if taken.messages:
            first = self._received + 1
            self._received += len(taken.messages)
            self._unsettled.update(enumerate(taken.deliveries, first))
            self._arrivals.arrived(first, taken.messages)
        credit.arrived(len(taken.messages) + taken.aborted)
        if taken.aborted:
            self._arrivals.credited(-taken.aborted)
            if not credit.stopping:
                self._arrivals.missed()

    def _refuse(self, excess: Excess) -> None:
        """Stop what would take too much memory, while it arrives."""
        text = f"{excess.what} came from {self._name}"
        self._decline()
        self._link.condition = Condition(excess.condition, text)
        self._fail(ResourceAllocationError(f"{text}{excess.remedy}."))
        self.shut()

    def _decline(self) -> None:
        """Let go what still comes on a link that has failed; a broker that goes on and on is left."""
        self._declined += self._intake.decline()
        if self._declined > self._asked_for - self._received + _MOST_MORE:
            self._engine.abort(
                ConnectionLostError(f"The broker goes on sending from {self._name} after the end of the link.")
            )

    def _credited(self, more: int) -> None:
        """What is asked for only to be answered may come, too; of what a stop takes back all may be on its way."""
        if not self._drains:
            self._asked_for += max(more, -1)
        self._arrivals.credited(more)

    def _make(self, session: Any, name: str) -> Any:
        link = session.receiver(self._source.subscription.name if self._source.subscription else name)
        self._source.apply(link.source)
        link.target.address = name
        link.rcv_settle_mode = RECEIVER_SETTLES_FIRST
        link.snd_settle_mode = SENDER_UNSETTLED
        link.max_message_size = self._message_bytes
        if self._drains:
            self._credit = DrainedCredit(link, self._credited)
        else:
            self._credit = AnsweredCredit(link, self._credited, self._engine.pump.encode, self._engine.post)
        self._intake = Intake(pointer_to(link), self._engine.buffer, self._message_bytes)
        return link

    def _is_refused(self) -> bool:
        return self._link.remote_source.address is None

    def _objection(self) -> JMSError | None:
        return self._source.objection(self._link.remote_source)

    def _refusal(self, condition: Any) -> JMSError:
        return self._source.refusal(condition) or super()._refusal(condition)

    def _fail(self, error: JMSError) -> None:
        super()._fail(error)
        self._unsettled.clear()
        if self._credit is not None:
            self._credit.end(error)
        self._arrivals.broken(error)

    def _forget(self) -> None:
        super()._forget()
        self._unsettled.clear()
