"""The fields of an activation spec, each checked, and what does not fit together."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationInfo, field_validator, model_validator

from jmsjca.config.acknowledge import AcknowledgeMode
from jmsjca.config.distribution import DistributedSubscription
from jmsjca.config.inbound_options import merge_options
from jmsjca.config.spec_values import Acknowledging, ConcurrencyMode, Handling, Options, Seconds, Switch, URLText
from jmsjca.destinations import Destination, DestinationKind
from jmsjca.redelivery import DEFAULT_REDELIVERY_HANDLING

__all__ = ["SpecFields"]


def _ten_per_endpoint(fields: dict[str, Any]) -> int:
    return 10 * int(fields.get("endpoint_pool_max_size", 1))  # absent if it is wrong, which is told


class SpecFields(BaseModel):
    """What `ActivationSpec` is made of; the fields are told there."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    # A validator sees the fields above its own: the order counts.
    destination: str = Field(min_length=1)
    destination_type: DestinationKind = "queue"
    connection_url: URLText | None = Field(default=None, repr=False)  # may hold a password
    user_name: str | None = None
    password: SecretStr | None = None
    client_id: str | None = None
    options: Options = Field(default_factory=dict[str, str], repr=False)  # likewise
    selector: str | None = None
    subscription_durability: Literal["Durable", "NonDurable"] = "NonDurable"
    subscription_name: str | None = Field(default=None, validate_default=True)
    concurrency_mode: ConcurrencyMode = "serial"
    endpoint_pool_max_size: int = Field(default=15, ge=1)
    batch_size: int = Field(default=0, ge=0)
    split_failed_batches: Switch = False
    hold_until_ack: Switch = False
    acknowledgement_timeout: Seconds | None = None
    max_outstanding: int = Field(default_factory=_ten_per_endpoint, ge=1)
    redelivery_handling: Handling = DEFAULT_REDELIVERY_HANDLING
    transaction: Literal["local", "required", "bean", "none"] = "local"
    acknowledge_mode: Acknowledging = AcknowledgeMode.AUTO
    context_name: str | None = None
    mbean_name: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _split_destination(cls, fields: dict[str, Any]) -> dict[str, Any]:
        destination = fields.get("destination")
        if not isinstance(destination, Destination):
            return fields
        return {**fields, "destination": destination.name, "destination_type": destination.kind}

    @field_validator("subscription_name")
    @classmethod
    def _names_a_subscription(cls, name: str | None, others: ValidationInfo) -> str | None:
        if others.data.get("destination_type") != "topic":
            return name
        durable = others.data.get("subscription_durability") == "Durable"
        if durable and not name:
            raise ValueError("it is missing: a durable subscription of a topic needs one")
        if name and DistributedSubscription.parse(name) and not durable:
            raise ValueError("a distributed subscription must be durable: set subscription_durability to 'Durable'")
        return name

    @field_validator("batch_size", "hold_until_ack")
    @classmethod
    def _fits_the_mode(cls, value: int, others: ValidationInfo) -> int:
        on = value > 1 or value is True
        return cls._misfit(value, others) if on and _mode_in_force(others.data) == "serial" else value

    @classmethod
    def _misfit(cls, value: int, others: ValidationInfo) -> int:
        del value, others
        raise ValueError("mode 'serial' has neither batches nor held acknowledgement: use 'sync' or 'cc'")

    @field_validator("acknowledgement_timeout")
    @classmethod
    def _fits_the_acknowledgement(cls, timeout: float | None, others: ValidationInfo) -> float | None:
        if timeout is not None and others.data.get("hold_until_ack") is False:
            raise ValueError("nothing waits for an acknowledgement: set hold_until_ack as well")
        return timeout


def _mode_in_force(fields: Mapping[str, Any]) -> str | None:
    options = merge_options(fields.get("options", {}), url=fields.get("connection_url"))
    return options.get("JMSJCA.concurrencymode", "").lower() or fields.get("concurrency_mode")
