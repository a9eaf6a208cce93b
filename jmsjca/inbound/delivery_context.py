"""The delivery of a message, as the message knows it: the batch, redeliveries, rollback, and the data kept for them."""

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Protocol, Self
from weakref import ref

from jmsjca.messages.message import Message
from jmsjca.messages.settlement import Settlement
from jmsjca.outbound.unit_of_work import UnitOfWork
from jmsjca.redelivery.encounter import Failure

if TYPE_CHECKING:
    from jmsjca.inbound.endpoint import Endpoint

__all__ = ["DeliveredUnit", "EndpointDeliveryContext"]


class DeliveredUnit(Protocol):
    """A delivery attempt, as its messages use it.

    Attributes:
        endpoint: The endpoint.
        unit: The unit of work.
    """

    endpoint: "Endpoint"
    unit: UnitOfWork

    @property
    def settlement(self) -> Settlement:
        """The settlement of the unit."""
        ...

    def identity_of(self, message: Message) -> str | None:
        """Return the identity of a message of the unit."""
        ...


class EndpointDeliveryContext:
    """The endpoint's state of one message, which the message refers to through its one internal slot.

    Args:
        message: The message to deliver.
        attempt: The delivery attempt that the message belongs to.
        batch_index: The number of messages of the batch before it; None without batches.
        end_of_batch: True for the message that only marks the end of the batch.

    Attributes:
        batch_index: The position in the batch, as given.
    """

    __slots__ = ("_attempt", "_is_end_of_batch", "_message", "batch_index")

    def __init__(
        self, message: Message, attempt: "DeliveredUnit", batch_index: int | None, *, end_of_batch: bool = False
    ) -> None:
        self._message = ref(message)  # a weak reference: a cycle would delay the release of the body
        self._attempt = attempt
        self.batch_index = batch_index
        self._is_end_of_batch = end_of_batch

    @property
    def endpoint(self) -> Self:
        """Return self: the message was delivered by a listener."""
        return self

    @property
    def batch_size(self) -> int | None:
        """The maximum number of messages of a batch; None without batches."""
        return self._attempt.endpoint.settings.batch_size or None

    @property
    def rollback_only(self) -> bool:
        """True if the unit is marked for rollback."""
        return self._attempt.unit.rollback_only

    def acknowledge(self) -> Settlement:
        """Do nothing but return the settlement: the handler's return acknowledges."""
        return self._attempt.settlement

    def set_rollback_only(self) -> None:
        """Mark the unit for rollback."""
        self._attempt.unit.set_rollback_only()

    @property
    def redelivery_count(self) -> int:
        """Number of redeliveries seen so far; 0 on the first delivery."""
        return self._attempt.endpoint.redelivery_count_of(self._id)

    @property
    def redelivery_handling(self) -> str:
        """The redelivery handling of this message, as text."""
        return self._attempt.endpoint.redelivery.policy_of(self._id).text

    @redelivery_handling.setter
    def redelivery_handling(self, text: str) -> None:
        """Set the redelivery handling of this message."""
        redelivery = self._attempt.endpoint.redelivery
        redelivery.policy.with_text(text)  # raises an error if a target of a move cannot be looked up
        redelivery.set_handling(self._id, text)

    def user_rollback_data(self) -> MutableMapping[str, str]:
        """Return the data that the handler keeps for the next delivery of this message."""
        return _UserRollbackData(self._attempt, self._id)

    @property
    def failure(self) -> Failure | None:
        """The error that the handler raised on the previous delivery of this message; None without such an error."""
        encounter = self._attempt.endpoint.redelivery.find_encounter(self._id)
        return None if encounter is None else encounter.failure

    def stop_message_delivery(self, reason: str | None) -> None:
        """Stop the endpoint. This message is still settled as its handler decides."""
        self._attempt.endpoint.request_stop(reason)

    def stats(self) -> Mapping[str, object]:
        """Return the counters of the endpoint."""
        return self._attempt.endpoint.statistics.as_map()

    @property
    def destination_name(self) -> str:
        """The name of the destination that the endpoint consumes from."""
        return self._attempt.endpoint.settings.destination.name

    @property
    def mbean_name(self) -> str | None:
        """The name under which the endpoint is managed; None if it has none."""
        return self._attempt.endpoint.mbean_name

    @property
    def mbean(self) -> object:
        """The activation."""
        return self._attempt.endpoint.activation

    @property
    def _id(self) -> str | None:
        message = self._message()
        return None if message is None or self._is_end_of_batch else self._attempt.identity_of(message)


class _UserRollbackData(MutableMapping[str, str]):
    """A live view of the user rollback data of one message."""

    def __init__(self, attempt: "DeliveredUnit", message_id: str | None) -> None:
        self._redelivery = attempt.endpoint.redelivery
        self._message_id = message_id

    def _data(self) -> Mapping[str, str]:
        known = self._redelivery.find_encounter(self._message_id)
        return known.rollback_data if known is not None else {}

    def __getitem__(self, key: str) -> str:
        return self._data()[key]

    def __setitem__(self, key: str, value: str) -> None:
        self._redelivery.encounter(self._message_id).set_rollback_data(key, value)

    def __delitem__(self, key: str) -> None:
        del dict(self._data())[key]  # or KeyError
        self._redelivery.encounter(self._message_id).set_rollback_data(key, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._data())

    def __len__(self) -> int:
        return len(self._data())

    def __repr__(self) -> str:
        return f"<user rollback data of {len(self)} names>"
