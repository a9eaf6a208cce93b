"""The delivery of a received message: its attributes and methods, and the contexts that it is bound to."""

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, NoReturn, Protocol, SupportsIndex

from jmsjca.errors import IllegalStateError
from jmsjca.forking import ProcessBound
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
    """The unit of work that a delivered message belongs to, as the message sees it."""

    @property
    def endpoint(self) -> "EndpointContext | None":
        """The context of a listener's delivery; None if a session delivered the message."""
        ...

    @property
    def rollback_only(self) -> bool:
        """True if the unit will be rolled back."""
        ...

    def acknowledge(self) -> Settlement:
        """Acknowledge the message."""
        ...

    def set_rollback_only(self) -> None:
        """Mark the unit for rollback."""
        ...


class PreviousFailure(Protocol):
    """The exception of the handler's previous attempt at a message, as text."""

    @property
    def error_class(self) -> str:
        """The class of the exception."""
        ...

    @property
    def message(self) -> str:
        """The text of the exception."""
        ...

    @property
    def stack_trace(self) -> str:
        """The stack trace of the exception."""
        ...


class EndpointContext(DeliveryContext, Protocol):
    """The context of a listener's delivery. Only its methods and its setter control the delivery."""

    @property
    def redelivery_handling(self) -> str:
        """The redelivery handling of this message, as text.

        The setter parses the text at once and may raise `InvalidRedeliveryHandlingError`. The new handling applies from
        the next delivery on.
        """
        ...

    @redelivery_handling.setter
    def redelivery_handling(self, text: str) -> None:
        """Set the redelivery handling of this message."""

    @property
    def batch_index(self) -> int | None:
        """The index of the message in its batch, from 0; None outside of batch mode."""
        ...

    @property
    def batch_size(self) -> int | None:
        """The configured maximum batch size; None outside of batch mode."""
        ...

    @property
    def redelivery_count(self) -> int:
        """The number of redeliveries seen so far; 0 on the first delivery."""
        ...

    @property
    def failure(self) -> PreviousFailure | None:
        """The failure of the handler's previous attempt; None if it did not fail."""
        ...

    @property
    def destination_name(self) -> str:
        """The name of the listener's destination."""
        ...

    @property
    def mbean_name(self) -> str | None:
        """The name of the activation's management bean; None if it has no bean."""
        ...

    @property
    def mbean(self) -> object:
        """The management bean of the activation; None if it has no bean."""
        ...

    def user_rollback_data(self) -> MutableMapping[str, str]:
        """Return a live view of the texts that are kept until the message is redelivered."""
        ...

    def stop_message_delivery(self, reason: str | None) -> None:
        """Stop the activation after this delivery, and log the reason."""
        ...

    def stats(self) -> Mapping[str, object]:
        """Return the statistics of the activation by name."""
        ...


class DeliveryMixin(ProcessBound):
    """The part of a message that concerns its delivery.

    If no listener delivered the message, attributes that only a listener knows have the values of a first delivery
    outside of a batch, and methods that only a listener supports raise `IllegalStateError`.
    """

    __slots__ = ("_context", "_original_id")

    delivery_count: int
    message_id: str | None
    _original_id: str | None  # the id of the received message, set when it is sent again
    _context: DeliveryContext | None

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        if self._context is None:
            return object.__reduce_ex__(self, protocol)
        raise TypeError(
            f"This received {type(self).__name__} cannot be pickled: it belongs to the session that acknowledges it. "
            "Pass what you need of it, for example message.body and dict(message.properties)."
        )

    @property
    def redelivery_count(self) -> int:
        """The number of earlier deliveries; in a listener as counted by its redelivery handling."""
        endpoint = self._endpoint()
        return max(self.delivery_count - 1, 0) if endpoint is None else endpoint.redelivery_count

    @property
    def batch_index(self) -> int:
        """The index of the message in its batch, from 0; of the end-of-batch message the number of messages."""
        endpoint = self._endpoint()
        return 0 if endpoint is None else endpoint.batch_index or 0

    @property
    def batch_size(self) -> int:
        """The configured maximum batch size; 1 outside of batches."""
        endpoint = self._endpoint()
        return 1 if endpoint is None else endpoint.batch_size or 1

    @property
    def end_of_batch(self) -> bool:
        """True for the extra message that marks the end of a batch."""
        return False

    @property
    def redelivery_handling(self) -> str:
        """The redelivery handling of the message, as text; empty outside of listeners.

        Setting it changes the handling of this message only, from its next delivery on.

        Raises:
            InvalidRedeliveryHandlingError: On setting: the text cannot be parsed.
            IllegalStateError: On setting: no listener delivered the message, or it has no id.
        """
        endpoint = self._endpoint()
        return "" if endpoint is None else endpoint.redelivery_handling

    @redelivery_handling.setter
    def redelivery_handling(self, text: str) -> None:
        """Set the redelivery handling of this message."""
        self._require_endpoint("changes how it is redelivered").redelivery_handling = text

    @property
    def user_rollback_data(self) -> MutableMapping[str, str]:
        """Texts that the listener keeps for the redeliveries of this message.

        Setting raises `IllegalStateError` if no listener delivered the message.
        """
        endpoint = self._endpoint()
        return _EmptyRollbackData() if endpoint is None else endpoint.user_rollback_data()

    @property
    def rollback_only(self) -> bool:
        """True if the unit of work of this delivery is marked for rollback."""
        return self._context is not None and self._context.rollback_only

    def acknowledge(self) -> Settlement:
        """Acknowledge a received message; never blocks in a listener.

        Under `AcknowledgeMode.CLIENT` it acknowledges all messages that the session has received, under `INDIVIDUAL`
        only this one. In a listener without held acknowledgement it has no effect: the message is acknowledged when the
        handler returns.

        Returns:
            The settlement of the unit of work that the message belongs to.

        Raises:
            IllegalStateError: The message was not received.
        """
        return self._delivered().acknowledge()

    def set_rollback_only(self) -> None:
        """Mark the unit of work of this delivery for rollback, even if the handler returns normally.

        Raises:
            IllegalStateError: The message was not received, or its unit of work is settled.
        """
        self._delivered().set_rollback_only()

    def stop_message_delivery(self, reason: str | None = None) -> None:
        """Stop the listener that delivered this message. The current delivery is completed normally.

        Args:
            reason: The reason, for the log.

        Raises:
            IllegalStateError: No listener delivered the message.
        """
        self._require_endpoint("stops the delivery of messages").stop_message_delivery(reason)

    def _bind(self, context: DeliveryContext) -> None:
        """Bind a delivered message to its unit of work."""
        self._context = context

    def _begin_resend(self) -> None:
        """Record the id of a received message before a send assigns another one."""
        if self._context is not None:
            self._original_id = self._original_message_id()

    def _original_message_id(self) -> str | None:
        """Return the id that the message was received with, even after it was sent again; for others the message id."""
        try:
            return self._original_id
        except AttributeError:  # in nearly all cases
            return self.message_id

    def _require_endpoint(self, purpose: str) -> EndpointContext:
        """Return the context of the listener's delivery.

        Args:
            purpose: The verb phrase of the error message: the operation that needs a listener.

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
    """The user rollback data of a message that no listener delivered: always empty, and read-only."""

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
