"""What a message that a listener delivers is tied to."""

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Self
from weakref import ref

from jmsjca.errors import IllegalStateError
from jmsjca.inbound.unavailable import refuse_unavailable_handling
from jmsjca.messages import Message, Settlement
from jmsjca.redelivery import Failure

if TYPE_CHECKING:
    from jmsjca.inbound.held import HeldInHand
    from jmsjca.inbound.in_hand import InHand

__all__ = ["Delivered", "Held"]


class Delivered:
    """Reached through the one internal slot of a message: its unit, and what the endpoint knows of it.

    Args:
        message: What is delivered.
        hand: Its unit.
        batch_index: How many messages the batch had before it; None without batches.
        end_of_batch: True for the message that only says that the batch is over.

    Attributes:
        batch_index: As given.
    """

    __slots__ = ("_end", "_hand", "_message", "batch_index")

    def __init__(
        self, message: Message, hand: "InHand", batch_index: int | None, *, end_of_batch: bool = False
    ) -> None:
        self._message = ref(message)  # which has this one: a circle would keep its body until the collector comes
        self._hand = hand
        self.batch_index = batch_index
        self._end = end_of_batch

    @property
    def endpoint(self) -> Self:
        """This is a listener's delivery."""
        return self

    @property
    def batch_size(self) -> int | None:
        """How many messages a batch has at most; None without batches."""
        return self._hand.endpoint.terms.batch_size or None

    @property
    def rollback_only(self) -> bool:
        """True if the unit is going to roll back."""
        return self._hand.work.rollback_only

    def acknowledge(self) -> Settlement:
        """Nothing to do: the handler's return acknowledges."""
        return self._settlement()

    def set_rollback_only(self) -> None:
        """Let the unit end in a rollback."""
        self._hand.work.set_rollback_only()

    @property
    def redelivery_count(self) -> int:
        """For the how-manieth time the message is seen redelivered; 0 the first time."""
        return self._hand.endpoint.count_of(self._id)

    @property
    def redelivery_handling(self) -> str:
        """What is done with this message when it comes again."""
        return self._hand.endpoint.redelivery.policy_of(self._id).text

    @redelivery_handling.setter
    def redelivery_handling(self, text: str) -> None:
        redelivery = self._hand.endpoint.redelivery
        refuse_unavailable_handling(redelivery.policy.changed(text))
        redelivery.change(self._id, text)

    def user_rollback_data(self) -> MutableMapping[str, str]:
        """What is remembered of this message until it comes again."""
        return RollbackData(self._hand, self._id)

    @property
    def failure(self) -> Failure | None:
        """What the handler raised when it had this message before."""
        encounter = self._hand.endpoint.redelivery.known(self._id)
        return None if encounter is None else encounter.failure

    def stop_message_delivery(self, reason: str | None) -> None:
        """Stop the endpoint; this message ends as its handler decides."""
        self._hand.endpoint.request_stop(reason)

    def stats(self) -> Mapping[str, object]:
        """What the endpoint counted."""
        return self._hand.endpoint.statistics.as_map()

    @property
    def destination_name(self) -> str:
        """What the endpoint listens to."""
        return self._hand.endpoint.terms.destination.name

    @property
    def mbean_name(self) -> str | None:
        """The name under which the endpoint is managed."""
        return self._hand.endpoint.mbean_name

    @property
    def mbean(self) -> object:
        """The activation."""
        return self._hand.endpoint.activation

    def _settlement(self) -> Settlement:
        settlement = self._hand.work.settlement
        settlement.guard(self._hand.is_asked_by_handler)
        return settlement

    @property
    def _id(self) -> str | None:
        message = self._message()
        return None if message is None or self._end else message.delivered_id


class Held(Delivered):
    """That of a message which somebody has to acknowledge.

    Attributes:
        acknowledged: True once somebody did.
        message_id: Which message it is.
    """

    __slots__ = ("_held", "acknowledged", "message_id")

    def __init__(
        self, message: Message, hand: "HeldInHand", batch_index: int | None, *, end_of_batch: bool = False
    ) -> None:
        super().__init__(message, hand, batch_index, end_of_batch=end_of_batch)
        self._held = hand
        self.acknowledged = False
        self.message_id = None if end_of_batch else message.message_id

    def acknowledge(self) -> Settlement:
        """Acknowledge; the last one of a unit settles it. Never blocks, and twice is as once."""
        self._held.acknowledged(self)
        return self._held.settlement

    def set_rollback_only(self) -> None:
        """Let the unit end in a rollback, once all is acknowledged.

        Raises:
            IllegalStateError: The message is acknowledged, or the unit settled.
        """
        if self.acknowledged:
            raise IllegalStateError("The message is acknowledged already; set_rollback_only() comes before that.")
        super().set_rollback_only()


class RollbackData(MutableMapping[str, str]):
    """The user rollback data of one message, as it is now."""

    def __init__(self, hand: "InHand", message_id: str | None) -> None:
        self._redelivery = hand.endpoint.redelivery
        self._message_id = message_id

    def _data(self) -> Mapping[str, str]:
        known = self._redelivery.known(self._message_id)
        return known.rollback_data if known is not None else {}

    def __getitem__(self, key: str) -> str:
        return self._data()[key]

    def __setitem__(self, key: str, value: str) -> None:
        self._redelivery.encounter(self._message_id).remember(key, value)

    def __delitem__(self, key: str) -> None:
        del dict(self._data())[key]  # or KeyError
        self._redelivery.encounter(self._message_id).remember(key, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._data())

    def __len__(self) -> int:
        return len(self._data())

    def __repr__(self) -> str:
        return f"<user rollback data of {len(self)} names>"
