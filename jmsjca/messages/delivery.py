"""What a received message can do to its delivery, and the contexts that it is bound to."""

from collections.abc import Iterator, Mapping, MutableMapping
from typing import NoReturn, Protocol

from jmsjca.errors import IllegalStateError
from jmsjca.messages.settlement import Settlement

__all__ = [
    "DeliveryContext",
    "DeliveryMixin",
    "EndpointContext",
    "PreviousFailure",
    "begin_resend",
    "bind_delivery",
    "original_message_id",
    "require_endpoint",
]


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


class DeliveryMixin:
    """What a message knows of the delivery that it came with, and can do to it.

    Where no listener delivered the message, what only a listener knows reads as if it were the first delivery of a
    message outside of any batch, and what only a listener can do raises `IllegalStateError`.
    """

    __slots__ = ("_context", "_original_id")

    delivery_count: int
    message_id: str | None
    _original_id: str | None  # set when it is sent on
    _context: DeliveryContext | None

    @property
    def redelivery_count(self) -> int:
        """How often the message was delivered before; in a listener as its redelivery handling counts."""
        endpoint = self._endpoint()
        return max(self.delivery_count - 1, 0) if endpoint is None else endpoint.redelivery_count

    @property
    def batch_index(self) -> int:
        """How many messages of the batch came before this one; of the message at its end how many there were."""
        endpoint = self._endpoint()
        return 0 if endpoint is None else endpoint.batch_index or 0

    @property
    def batch_size(self) -> int:
        """How many messages a batch has at most, as configured; 1 outside of batches."""
        endpoint = self._endpoint()
        return 1 if endpoint is None else endpoint.batch_size or 1

    @property
    def end_of_batch(self) -> bool:
        """True for the extra message at the end of a batch."""
        return False

    @property
    def redelivery_handling(self) -> str:
        """What is done with the message when it comes again and again, as a text; empty outside of listeners.

        Another text holds for this message alone, from its next delivery on.

        Raises:
            InvalidRedeliveryHandlingError: On setting: the text is wrong.
            IllegalStateError: On setting: no listener delivered the message, or it has no id.
        """
        endpoint = self._endpoint()
        return "" if endpoint is None else endpoint.redelivery_handling

    @redelivery_handling.setter
    def redelivery_handling(self, text: str) -> None:
        self._require_endpoint("changes how it is redelivered").redelivery_handling = text

    @property
    def user_rollback_data(self) -> MutableMapping[str, str]:
        """Texts that are found again when the message comes again: what you set, this listener reads then.

        Setting raises `IllegalStateError` if no listener delivered the message.
        """
        endpoint = self._endpoint()
        return _EmptyRollbackData() if endpoint is None else endpoint.user_rollback_data()

    @property
    def rollback_only(self) -> bool:
        """True once the unit of this delivery is to roll back."""
        return self._context is not None and self._context.rollback_only

    def acknowledge(self) -> Settlement:
        """Acknowledge a received message; never blocks in a listener.

        Under `AcknowledgeMode.CLIENT` it acknowledges all that the session received, under `INDIVIDUAL` this message.
        In a listener without held acknowledgement it changes nothing: the handler's return acknowledges.

        Returns:
            The settlement of the unit that the message belongs to.

        Raises:
            IllegalStateError: The message was not received.
        """
        return self._delivered().acknowledge()

    def set_rollback_only(self) -> None:
        """Make the unit of this delivery roll back although the handler returns normally.

        Raises:
            IllegalStateError: The message was not received, or its unit is settled.
        """
        self._delivered().set_rollback_only()

    def stop_message_delivery(self, reason: str | None = None) -> None:
        """Stop the listener that delivered this message. The delivery in hand ends as it would have ended.

        Args:
            reason: Why, for the log.

        Raises:
            IllegalStateError: No listener delivered the message.
        """
        self._require_endpoint("stops the delivery of messages").stop_message_delivery(reason)

    def _bind(self, context: DeliveryContext) -> None:
        """Tie a delivered message to its unit. For whoever delivers it."""
        self._context = context

    def _begin_resend(self) -> None:
        """Note that the message gets another id, as it is sent. For whoever sends it."""
        if self._context is not None:
            self._original_id = self._original_message_id()

    def _original_message_id(self) -> str | None:
        """The id that the message came with, also after it was sent on; of one that did not come its id."""
        try:
            return self._original_id
        except AttributeError:  # as nearly always
            return self.message_id

    def _require_endpoint(self, purpose: str) -> EndpointContext:
        """Give the listener's delivery that the message came with. For the vendor's properties.

        Args:
            purpose: What only such a message does, for the error's text.

        Raises:
            IllegalStateError: No listener delivered the message.
        """
        endpoint = self._endpoint()
        if endpoint is None:
            raise IllegalStateError(f"No listener delivered this message; only one that a listener delivers {purpose}.")
        return endpoint

    def _endpoint(self) -> EndpointContext | None:
        context = self._context
        return None if context is None else context.endpoint

    def _delivered(self) -> DeliveryContext:
        if self._context is None:
            raise IllegalStateError("This message was not delivered by a session or a listener, so it has no unit.")
        return self._context


# For sessions, listeners and providers; methods of these names would be offered to every user of a message.
bind_delivery = DeliveryMixin._bind  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
begin_resend = DeliveryMixin._begin_resend  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
original_message_id = DeliveryMixin._original_message_id  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
require_endpoint = DeliveryMixin._require_endpoint  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


class _EmptyRollbackData(MutableMapping[str, str]):
    """There is none, and nobody would find any again."""

    __slots__ = ()

    def __getitem__(self, name: str) -> NoReturn:
        raise KeyError(name)

    def __setitem__(self, name: str, text: str) -> NoReturn:
        raise IllegalStateError(
            "No listener delivered this message, so nothing can be remembered of it; set a property, and send it."
        )

    def __delitem__(self, name: str) -> NoReturn:
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0
