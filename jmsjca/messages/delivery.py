"""The delivery of a received message: its attributes and methods, JMSJCA's own properties, and its settlement.

JMSJCA's own properties are separate from the properties of the message, as if a wrapper had them. They are not listed,
and they can be set although the message is read-only. If a sender sets properties with these names, the properties have
no effect and are hidden. The names are not case-sensitive.

There is one exception: a moved copy records the failure. If the listener itself has no failure, the recorded failure is
returned, so that a listener of a dead-letter queue learns the reason.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, MutableMapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from functools import lru_cache
from operator import attrgetter
from threading import Lock
from typing import Any, NamedTuple, NoReturn, Protocol, SupportsIndex

from jmsjca.arguments import TIMEOUT
from jmsjca.errors import IllegalStateError, MessageFormatError, MessageNotWriteableError
from jmsjca.forking import ProcessBound
from jmsjca.messages.properties import PropertyValue, as_boolean, as_text

__all__ = [
    "MANUAL_PREFIX",
    "PREFIX",
    "ROLLBACK",
    "DeliveryContext",
    "DeliveryMixin",
    "EndpointContext",
    "Outcome",
    "PreviousFailure",
    "Settlement",
    "VendorProperty",
    "begin_resend",
    "bind_delivery",
    "complete_settlement",
    "forbid_waiting",
    "original_message_id",
    "require_endpoint",
    "rollback_key",
    "rollback_names",
    "vendor_names",
    "vendor_property",
]


class Outcome(Enum):
    """The outcome of the unit of work that a message belongs to."""

    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"
    LOST = "lost"
    IN_DOUBT = "in doubt"

    __hash__ = object.__hash__  # members are counted by outcome for each unit, and `Enum` hashes their names slowly


class Settlement:
    """The result of `Message.acknowledge`: `wait` or ``await`` returns the outcome of the unit of work."""

    __slots__ = ("_future", "_lock", "_outcome", "_would_deadlock")

    def __init__(self) -> None:
        self._lock = Lock()
        self._outcome: Outcome | None = None
        self._future: Future[Outcome] | None = None  # created on demand: most settlements are never waited for
        self._would_deadlock: Callable[[], bool] | None = None

    @property
    def outcome(self) -> Outcome | None:
        """The outcome; None while the unit is open."""
        return self._outcome

    def wait(self, timeout: float | timedelta | None = None) -> Outcome | None:
        """Wait for the outcome.

        Args:
            timeout: The maximum wait in seconds; None waits forever.

        Returns:
            The outcome; None after the timeout.

        Raises:
            IllegalStateError: The handler waits for its own unit, which is settled only after the handler returns.
            InvalidArgumentError: The timeout is not a number of seconds, or is negative.
        """
        timeout = TIMEOUT("timeout", timeout)
        if timeout != 0:
            self._refuse_deadlock()
        try:
            return self._get_future().result(timeout)
        except FutureTimeoutError:
            return None

    def __await__(self) -> Generator[Any, None, Outcome]:
        self._refuse_deadlock()
        import asyncio  # loaded already where this is awaited

        return asyncio.wrap_future(self._get_future()).__await__()

    def __repr__(self) -> str:
        return f"<Settlement {self.outcome.value if self.outcome else 'open'}>"

    def _complete(self, outcome: Outcome) -> None:
        """Set the outcome. The owner of the unit calls this once."""
        with self._lock:
            self._outcome, self._would_deadlock = outcome, None
            future = self._future
        if future is not None:
            future.set_result(outcome)

    def _forbid_waiting(self, would_deadlock: Callable[[], bool]) -> None:
        """Refuse waits that could never end.

        Args:
            would_deadlock: Returns True if its caller must return before the unit is settled. The same function for all
                messages of one unit.
        """
        with self._lock:
            if self._outcome is None:
                self._would_deadlock = would_deadlock

    def _get_future(self) -> "Future[Outcome]":
        with self._lock:
            if self._future is None:
                self._future = Future()
                # Running from the start, so that a cancelled waiter does not cancel it for the others.
                self._future.set_running_or_notify_cancel()
                if self._outcome is not None:
                    self._future.set_result(self._outcome)
            return self._future

    def _refuse_deadlock(self) -> None:
        would_deadlock = self._would_deadlock
        if would_deadlock is not None and self.outcome is None and would_deadlock():
            raise IllegalStateError(
                "A handler cannot wait for the outcome of its own unit, which is settled after it has returned. Let a "
                "task or a thread of its own wait."
            )


# For what settles units; methods of these names would be offered to every user of a settlement.
complete_settlement = Settlement._complete  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
forbid_waiting = Settlement._forbid_waiting  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


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


@dataclass(frozen=True, slots=True)
class PreviousFailure:
    """The exception of the handler's previous attempt at a message, as text.

    Attributes:
        error_class: The class of the exception, with its module.
        message: The text of the exception; at most its first 1,000 characters.
        stack_trace: The stack trace, with causes; at most its last 10,000 characters.
    """

    error_class: str
    message: str
    stack_trace: str


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
    def delivery_id(self) -> str | None:
        """The id of the delivery, if it is held until it is acknowledged; otherwise None."""
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
    def delivery_id(self) -> str | None:
        """The id of this delivery, by which `Activation.settle` settles it; each redelivery has another one.

        None unless a listener with ``hold_until_ack`` delivered the message.
        """
        endpoint = self._endpoint()
        return None if endpoint is None else endpoint.delivery_id

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


MANUAL_PREFIX = "JMS_Sun_JMSJCA_"
PREFIX = "_JMSJCA_"
"""The prefix of later releases. Unlike the manual's prefix, it does not begin with the reserved ``JMS_``."""

ROLLBACK = "UserRollbackData"


def vendor_names(name: str) -> tuple[str, str]:
    """Return a name with either prefix."""
    return MANUAL_PREFIX + name, PREFIX + name


def rollback_key(name: str) -> str | None:
    """Return the key of the user rollback data that a property name denotes; None for other names.

    ``JMS_Sun_JMSJCA_UserRollbackData.x``, the same without the dot, and both with the later prefix denote the key x.
    Only the key is case-sensitive.
    """
    for prefix in vendor_names(ROLLBACK):
        if name[: len(prefix)].lower() == prefix.lower():
            return name[len(prefix) :].removeprefix(".")
    return None


class VendorProperty(NamedTuple):
    """One of JMSJCA's own properties.

    Attributes:
        read: Returns the value.
        write: Sets the value.
        survives_move: True if a moved copy also has the property. Its value is returned if the listener has no value.
    """

    read: Callable[[DeliveryMixin], object]
    write: Callable[[DeliveryMixin, PropertyValue], None]
    survives_move: bool = False


@lru_cache(256)  # programs use few names, but often
def vendor_property(name: str) -> VendorProperty | None:
    """Return JMSJCA's property of that name; None for an ordinary property."""
    return _TABLE.get(name.lower()) or _rollback_data(name)


def _rollback_data(name: str) -> VendorProperty | None:
    key = rollback_key(name)
    if key is None:
        return None

    def _write(message: DeliveryMixin, value: PropertyValue) -> None:
        text = as_text(value)
        if text is None:
            message.user_rollback_data.pop(key, None)
        else:
            message.user_rollback_data[key] = text

    def _read(message: DeliveryMixin) -> object:
        return message.user_rollback_data.get(key)

    return VendorProperty(_read, _write, survives_move=True)


def _of_endpoint(read: Callable[[EndpointContext], object]) -> Callable[[DeliveryMixin], object]:
    return lambda message: read(require_endpoint(message, "has this property"))


def _of_failure(attribute: str) -> Callable[[DeliveryMixin], object]:
    """Return a reader of an attribute of the previous failure; it returns None without a failure."""
    return _of_endpoint(lambda endpoint: getattr(endpoint.failure, attribute, None))


def _end_of_batch(message: DeliveryMixin) -> bool | None:
    return message.end_of_batch or None  # not set on other messages


def _read_nothing(_: DeliveryMixin) -> None:
    """Return None: the property is write-only."""


def _read_only(_: DeliveryMixin, _value: PropertyValue) -> None:
    raise MessageNotWriteableError("This property of JMSJCA tells of the delivery; it can only be read.")


def _set_rollback_only(message: DeliveryMixin, value: PropertyValue) -> None:
    if not as_boolean(value):
        raise IllegalStateError("Rolling back cannot be taken back: this property can only be set to True.")
    message.set_rollback_only()


def _set_redelivery_handling(message: DeliveryMixin, value: PropertyValue) -> None:
    text = as_text(value)
    if text is None:
        raise MessageFormatError("A redelivery handling is a text, not None; the empty text has no actions.")
    message.redelivery_handling = text


def _stop(message: DeliveryMixin, value: PropertyValue) -> None:
    message.stop_message_delivery(as_text(value))


_ROLLBACK_ONLY = VendorProperty(attrgetter("rollback_only"), _set_rollback_only)
_UNPREFIXED = {
    "JMSJCA.EndOfBatch": VendorProperty(_end_of_batch, _read_only),
    "JMSJCA.batchIndex": VendorProperty(attrgetter("batch_index"), _read_only),
    "JMSJCA.batchSize": VendorProperty(attrgetter("batch_size"), _read_only),
    "JMSJCA.setRollbackOnly": _ROLLBACK_ONLY,
    "JMSJCA.isRollbackOnly": _ROLLBACK_ONLY,
    "JMSJCA.stats": VendorProperty(_of_endpoint(lambda endpoint: endpoint.stats()), _read_only),
    "JMSJCA.destination": VendorProperty(_of_endpoint(attrgetter("destination_name")), _read_only),
}
_PREFIXED = {
    "RedeliveryCount": VendorProperty(attrgetter("redelivery_count"), _read_only),
    "RedeliveryHandling": VendorProperty(attrgetter("redelivery_handling"), _set_redelivery_handling),
    "StopMessageDelivery": VendorProperty(_read_nothing, _stop),
    "MBeanName": VendorProperty(_of_endpoint(attrgetter("mbean_name")), _read_only),
    "MBeanServer": VendorProperty(_of_endpoint(attrgetter("mbean")), _read_only),
    "ExceptionClass": VendorProperty(_of_failure("error_class"), _read_only, survives_move=True),
    "ExceptionMessage": VendorProperty(_of_failure("message"), _read_only, survives_move=True),
    "ExceptionStackTrace": VendorProperty(_of_failure("stack_trace"), _read_only, survives_move=True),
}
_TABLE = {name.lower(): known for name, known in _UNPREFIXED.items()} | {
    spelling.lower(): known for name, known in _PREFIXED.items() for spelling in vendor_names(name)
}


def rollback_names(key: str) -> tuple[str, ...]:
    """Return the property names of user rollback data in a moved copy, in all spellings."""
    # Names with dots are valid only with the manual's prefix.
    return (
        (_dotted_rollback_name(key), MANUAL_PREFIX + ROLLBACK + key)
        if "." in key
        else (_dotted_rollback_name(key), *vendor_names(ROLLBACK + key))
    )


def _dotted_rollback_name(key: str) -> str:
    return f"{MANUAL_PREFIX}{ROLLBACK}.{key}"
