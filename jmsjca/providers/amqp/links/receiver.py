"""The receiving end of a link, as the engine's thread sees it: arrivals and settlement."""

from collections.abc import Sequence
from typing import Any

from proton import Condition

from jmsjca.errors import ConnectionLostError, JMSError, ResourceAllocationError
from jmsjca.providers.amqp.answered_credit import AnsweredCredit
from jmsjca.providers.amqp.arrivals import Arrivals
from jmsjca.providers.amqp.constants import RECEIVER_SETTLES_FIRST, SENDER_UNSETTLED
from jmsjca.providers.amqp.credit import Credit, DrainedCredit
from jmsjca.providers.amqp.credited_link import CreditedLink
from jmsjca.providers.amqp.engine import Engine
from jmsjca.providers.amqp.intake import Excess, Intake, Taken
from jmsjca.providers.amqp.proton_calls import Pointer, pointer_to
from jmsjca.providers.amqp.proton_deliveries import Settle
from jmsjca.providers.amqp.source import Source

__all__ = ["ReceivingLink"]

# So many messages may come unasked: where a broker is known to miscount, and where it has not heard of the link's end.
_MOST_MORE = 1000


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
