"""An endpoint's delivery context as a plain class with visible state."""

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Self

from jmsjca.errors import IllegalStateError, InvalidRedeliveryHandlingError
from jmsjca.messages import Message, Properties, PropertyValue, Settlement
from jmsjca.messages.delivery import bind_delivery
from jmsjca.redelivery import Failure


@dataclass
class ListenerDelivery:
    batch_index: int | None = 4
    batch_size: int | None = 10
    delivery_id: str | None = "ID:delivery"
    redelivery_count: int = 3
    failure: Failure | None = None
    destination_name: str = "orders"
    mbean_name: str | None = "jmsjca:name=orders"
    mbean: object = None
    handling: str = "5:1000"
    rollback_only: bool = False
    acknowledged: bool = False
    stopped: list[str | None] = field(default_factory=list[str | None])
    remembered: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def endpoint(self) -> Self:
        return self

    @property
    def redelivery_handling(self) -> str:
        return self.handling

    @redelivery_handling.setter
    def redelivery_handling(self, text: str) -> None:
        if text == "wrong":
            raise InvalidRedeliveryHandlingError(text)
        self.handling = text

    def acknowledge(self) -> Settlement:
        self.acknowledged = True
        return Settlement()

    def set_rollback_only(self) -> None:
        if self.acknowledged:
            raise IllegalStateError("acknowledged")
        self.rollback_only = True

    def user_rollback_data(self) -> MutableMapping[str, str]:
        return self.remembered

    def stop_message_delivery(self, reason: str | None) -> None:
        self.stopped.append(reason)

    def stats(self) -> Mapping[str, object]:
        return {"DA": 7}


class SessionDelivery:
    """What a session binds a message to."""

    endpoint: None = None
    rollback_only = False

    def acknowledge(self) -> Settlement:
        return Settlement()

    def set_rollback_only(self) -> None:
        self.rollback_only = True


def received(properties: Mapping[str, PropertyValue] | None = None, *, delivery_count: int = 2) -> Message:
    """A message with properties as they come from the wire: typed, but any names."""
    headers = {
        "properties": Properties.received(dict(properties or {})),
        "delivery_count": delivery_count,
        "redelivered": delivery_count > 1,
        "message_id": "ID:1",
        "destination": None,
    }
    return Message.received(None, lambda: headers)


def delivered(properties: Mapping[str, PropertyValue] | None = None) -> tuple[Message, ListenerDelivery]:
    """A message that a listener delivers, and what it is bound to."""
    message, context = received(properties), ListenerDelivery()
    bind_delivery(message, context)
    return message, context
