"""The activation spec: what a message-driven endpoint listens to, and how."""

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from jmsjca.destinations import Destination, DestinationKind, Queue, Subscription, Topic
from jmsjca.errors import InvalidActivationSpecError

__all__ = ["ActivationSpec"]

_LATER = "is not available in this release, which delivers in mode 'serial'"
_LATER_FIELDS = {
    "acknowledge_mode",
    "acknowledgement_timeout",
    "batch_size",
    "context_name",
    "endpoint_pool_max_size",
    "hold_until_ack",
    "max_outstanding",
    "mbean_name",
    "options",
    "redelivery_handling",
}


class ActivationSpec(BaseModel):
    """What an endpoint listens to, and how messages are delivered to it (JCA 1.6, section 13.4).

    Attributes:
        destination: The name of the destination, or a `Queue` or a `Topic`.
        destination_type: "queue" or "topic"; taken from the destination if that is more than a name.
        connection_url: The broker; None for that of the resource adapter.
        user_name: Who connects; None for the user name and password of the resource adapter.
        password: The password of ``user_name``; ignored without one.
        client_id: The client id of the connection; a durable subscription without one gets one made from its name.
        selector: Only messages that match are delivered; needs a provider that has selectors.
        subscription_durability: "Durable" or "NonDurable"; for topics.
        subscription_name: The name of a durable subscription.
        concurrency_mode: "serial": one message after the other, in order.
        transaction: "local": the receipt and what the handler sends through its session commit together.

    Raises:
        InvalidActivationSpecError: Fields are wrong; every one is listed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    destination: str = Field(min_length=1)
    destination_type: DestinationKind = "queue"
    connection_url: str | None = Field(default=None, repr=False)  # may hold a password
    user_name: str | None = None
    password: SecretStr | None = None
    client_id: str | None = None
    selector: str | None = None
    subscription_durability: Literal["Durable", "NonDurable"] = "NonDurable"
    subscription_name: str | None = None
    concurrency_mode: Literal["serial"] = "serial"
    transaction: Literal["local"] = "local"

    def __init__(self, **fields: Any) -> None:
        problems = list(_misfits(fields))
        try:
            super().__init__(**fields)
        except ValidationError as error:
            problems += [_explain(detail) for detail in error.errors()]
        if problems:
            raise InvalidActivationSpecError(f"The activation spec is wrong: {'; '.join(problems)}.")

    @model_validator(mode="before")
    @classmethod
    def _split_destination(cls, fields: dict[str, Any]) -> dict[str, Any]:
        destination = fields.get("destination")
        if not isinstance(destination, Destination):
            return fields
        return {**fields, "destination": destination.name, "destination_type": destination.kind}

    @field_validator("concurrency_mode", mode="before")
    @classmethod
    def _known_mode(cls, mode: object) -> object:
        mode = mode.lower() if isinstance(mode, str) else mode
        if mode in ("cc", "sync"):
            raise ValueError(f"{mode!r} {_LATER}")
        return mode

    @property
    def durable(self) -> bool:
        """True for a durable subscription of a topic."""
        return self.destination_type == "topic" and self.subscription_durability == "Durable"

    def source(self) -> Destination | Subscription:
        """What the consumer of this spec consumes from."""
        if self.destination_type == "queue":
            return Queue(self.destination)
        topic = Topic(self.destination)
        return Subscription(topic, self.subscription_name, self.effective_client_id) if self.durable else topic

    @property
    def effective_client_id(self) -> str | None:
        """The client id to connect with: the given one, else one made from a durable subscription's name."""
        if self.client_id or not self.durable:
            return self.client_id
        return f"CLIENTID-{self.subscription_name}"


def _misfits(fields: dict[str, Any]) -> Iterator[str]:
    """What does not fit together; not validators, which run only when each field by itself is right."""
    destination, kind = fields.get("destination"), fields.get("destination_type", "queue")
    if isinstance(destination, Destination):
        if "destination_type" in fields and kind != destination.kind:
            yield f"destination_type is {kind!r}, but the destination is {destination}"
        kind = destination.kind
    if kind == "topic" and fields.get("subscription_durability") == "Durable" and not fields.get("subscription_name"):
        yield "subscription_name is missing: a durable subscription of a topic needs one"


def _explain(detail: ErrorDetails) -> str:
    where = ".".join(str(part) for part in detail["loc"])
    if where in _LATER_FIELDS:
        return f"{where}: {_LATER}, one message at a time"
    if detail["type"] == "extra_forbidden":
        return f"{where}: there is no such field (there are {', '.join(ActivationSpec.model_fields)})"
    text = detail["msg"].removeprefix("Value error, ")
    shown = "" if where in ("", "password", "connection_url") else f" (given: {str(detail['input'])[:100]!r})"
    return f"{where}: {text}{shown}" if where else text
