"""What a delivered message is bound to: the unit of a session, or a listener's delivery."""

from collections.abc import Mapping, MutableMapping
from typing import Protocol

from jmsjca.messages.settlement import Settlement

__all__ = ["DeliveryContext", "EndpointContext", "PreviousFailure"]


class DeliveryContext(Protocol):
    """What a delivered message reaches through its one internal slot: the unit that it belongs to."""

    @property
    def endpoint(self) -> "EndpointContext | None":
        """The listener's delivery, which is a context itself; None where a session delivered the message."""
        ...

    @property
    def rollback_only(self) -> bool:
        """Whether the unit will roll back."""
        ...

    def acknowledge(self) -> Settlement:
        """Acknowledge the message."""
        ...

    def set_rollback_only(self) -> None:
        """Make the unit roll back."""
        ...


class PreviousFailure(Protocol):
    """What the handler raised when it had the message last, as text."""

    @property
    def error_class(self) -> str:
        """The exception's class."""
        ...

    @property
    def message(self) -> str:
        """Its text."""
        ...

    @property
    def stack_trace(self) -> str:
        """Where it was raised."""
        ...


class EndpointContext(DeliveryContext, Protocol):
    """What a message that a listener delivers is bound to. Only its methods and its setter control the delivery."""

    @property
    def redelivery_handling(self) -> str:
        """The text that holds for this message.

        Writing reads it at once, and may raise `InvalidRedeliveryHandlingError`; it holds from the next delivery on.
        """
        ...

    @redelivery_handling.setter
    def redelivery_handling(self, text: str) -> None: ...

    @property
    def batch_index(self) -> int | None:
        """How many messages of the batch came before; None outside of batch mode."""
        ...

    @property
    def batch_size(self) -> int | None:
        """How many messages a batch has at most, as configured; None outside of batch mode."""
        ...

    @property
    def redelivery_count(self) -> int:
        """For the how-manieth time the message is seen redelivered; 0 the first time."""
        ...

    @property
    def failure(self) -> PreviousFailure | None:
        """What the handler raised when it had the message last; None if it raised nothing."""
        ...

    @property
    def destination_name(self) -> str:
        """The name of the destination that the listener listens to."""
        ...

    @property
    def mbean_name(self) -> str | None:
        """The name of the activation's bean; None if it has none."""
        ...

    @property
    def mbean(self) -> object:
        """The activation's bean, by which it is managed; None if it has none."""
        ...

    def user_rollback_data(self) -> MutableMapping[str, str]:
        """Texts that are found again when the message comes again: a live view."""
        ...

    def stop_message_delivery(self, reason: str | None) -> None:
        """Stop the activation as soon as this delivery is over, and log why."""
        ...

    def stats(self) -> Mapping[str, object]:
        """The statistics of the activation, by name."""
        ...
