"""The activation spec: its fields, their validation, and explanations of what is wrong."""

import logging
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from jmsjca.config.connection_url import ConnectionURL
from jmsjca.config.deployment_descriptor import InvalidProperty, describe, fields_from_properties
from jmsjca.config.distributed_subscription import DistributedSubscription
from jmsjca.config.options import InboundOptions, jmsjca_options, parse_options, read_options
from jmsjca.config.settings import AcknowledgeMode
from jmsjca.destinations import Destination, DestinationKind, Queue, Subscription, Topic
from jmsjca.errors import InvalidActivationSpecError, excerpt
from jmsjca.redelivery import DEFAULT_REDELIVERY_HANDLING, RedeliveryPolicy

__all__ = [
    "ActivationSpec",
    "ConcurrencyMode",
    "Flag",
    "ListenerAcknowledgeMode",
    "Options",
    "RedeliveryHandlingText",
    "Seconds",
    "URLText",
    "merge_options",
]

logger = logging.getLogger("jmsjca.config")


def _validate_url(text: str) -> str:
    jmsjca_options(ConnectionURL.parse(text).query)
    return text


def _parse_mode(mode: object) -> object:
    mode = mode.lower() if isinstance(mode, str) else mode
    if mode == "multi-receiver":
        raise ValueError("'multi-receiver' is a mode that nothing delivers in; use 'sync' or 'cc'")
    return mode


def _parse_flag(value: object, info: ValidationInfo) -> object:
    if value is None or isinstance(value, str):
        if value and value.lower() not in ("0", "1", "false", "true"):
            logger.warning("%s is %r: only '1' and 'true' turn it on, so it is off.", info.field_name, excerpt(value))
        return value is not None and value.lower() in ("1", "true")
    return value


def _parse_options_text(value: object) -> object:
    if isinstance(value, str):
        return parse_options(value)
    return {} if value is None else value


def _validate_acknowledge_mode(value: object) -> object:
    if value in (AcknowledgeMode.AUTO, AcknowledgeMode.AUTO.value):
        return AcknowledgeMode.AUTO
    if value in (AcknowledgeMode.DUPS_OK, AcknowledgeMode.DUPS_OK.value):
        return AcknowledgeMode.DUPS_OK
    raise ValueError("it must be AcknowledgeMode.AUTO or DUPS_OK; hold_until_ack=True lets the handler acknowledge")


def _validate_redelivery_handling(handling: str) -> str:
    RedeliveryPolicy.parse(handling)
    return handling


URLText = Annotated[str, AfterValidator(_validate_url)]
"""A connection URL with options that exist."""

ConcurrencyMode = Annotated[Literal["serial", "cc", "sync"], BeforeValidator(_parse_mode)]
"""A concurrency mode, written in any case."""

Flag = Annotated[bool, BeforeValidator(_parse_flag)]
"""On or off; of texts only "1" and "true", in any case, are on."""

Options = Annotated[dict[str, str], BeforeValidator(_parse_options_text), AfterValidator(read_options)]
"""Options, from text or a mapping."""

ListenerAcknowledgeMode = Annotated[AcknowledgeMode, BeforeValidator(_validate_acknowledge_mode)]
"""How messages are acknowledged that nobody else acknowledges."""

RedeliveryHandlingText = Annotated[str, AfterValidator(_validate_redelivery_handling)]
"""A redelivery handling."""

Seconds = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
"""A time that passes."""


def _ten_per_endpoint(fields: dict[str, Any]) -> int:
    return 10 * int(fields.get("endpoint_pool_max_size", 1))  # absent if it is wrong, which is told


def _effective_mode(fields: Mapping[str, Any]) -> str | None:
    options = merge_options(fields.get("options", {}), url=fields.get("connection_url"))
    return options.get("JMSJCA.concurrencymode", "").lower() or fields.get("concurrency_mode")


class ActivationSpec(BaseModel):
    """What an endpoint listens to, and how messages are delivered to it (JCA 1.6, section 13.4).

    Attributes:
        destination: The name of the destination, or a `Queue` or a `Topic`.
        destination_type: "queue" or "topic"; taken from the destination if that is more than a name.
        connection_url: The broker; None for that of the resource adapter.
        user_name: Who connects; None for the user name and password of the resource adapter.
        password: The password of ``user_name``; ignored without one.
        client_id: The client id of the connection; a durable subscription without one gets one made from its name.
        options: JMSJCA's options, which replace fields, and the provider's: a mapping, or text as the manual has it.
        selector: Only messages that match are delivered; may hold ``${subscribername}``.
        subscription_durability: "Durable" or "NonDurable"; for topics.
        subscription_name: The name of a durable subscription, or ``jmsjca://?distribution=1&subscribername=…``.
        concurrency_mode: "serial": one message after the other, in order; "sync": several receivers; "cc": one
            consumer that feeds several handlers.
        endpoint_pool_max_size: How many handlers work at the same time, in modes "sync" and "cc".
        batch_size: How many messages make one unit, in modes "sync" and "cc"; 0 and 1 for no batches.
        split_failed_batches: True if the messages of a batch that was rolled back come again one by one, so that the
            good ones do not share the fate of a bad one.
        hold_until_ack: True if the unit ends when the handler, or somebody else, acknowledges; not in mode "serial".
        acknowledgement_timeout: Seconds after which a held unit is rolled back that nobody acknowledged; None: never.
        max_outstanding: How many units may be open; by default 10 times ``endpoint_pool_max_size``.
        redelivery_handling: What is done with messages that come again, as in `RedeliveryPolicy.parse`.
        transaction: "local": the receipt and what the handler sends through its session commit together; "none"; or
            "required" and "bean", which join a transaction of the container.
        acknowledge_mode: AUTO or DUPS_OK; counts only where ``transaction`` is "none".
        context_name: What is logged before and after each call of the handler; None for nothing.
        mbean_name: The name of the management bean; None for none.

    Raises:
        InvalidActivationSpecError: Fields are wrong; every one is listed.
    """

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
    split_failed_batches: Flag = False
    hold_until_ack: Flag = False
    acknowledgement_timeout: Seconds | None = None
    max_outstanding: int = Field(default_factory=_ten_per_endpoint, ge=1)
    redelivery_handling: RedeliveryHandlingText = DEFAULT_REDELIVERY_HANDLING
    transaction: Literal["local", "required", "bean", "none"] = "local"
    acknowledge_mode: ListenerAcknowledgeMode = AcknowledgeMode.AUTO
    context_name: str | None = None
    mbean_name: str | None = None

    def __init__(self, **fields: Any) -> None:
        problems = list(_destination_conflicts(fields))
        try:
            super().__init__(**fields)
        except ValidationError as error:
            problems += _explain(error, type(self).model_fields)
        if problems:
            raise InvalidActivationSpecError(f"The activation spec is wrong: {'; '.join(problems)}.")

    @classmethod
    def from_properties(cls, properties: Mapping[str, object], *, from_descriptor: bool = False) -> "ActivationSpec":
        """Make a spec from properties in the spelling of JMSJCA's manual.

        Args:
            properties: For instance ``{"destination": "orders", "destinationType": "javax.jms.Queue"}``. Capitals do
                not count in names. Those that JMSJCA checks and does not use are taken as well. Values are texts,
                or what `str` makes such texts of.
            from_descriptor: True for what stands in a deployed descriptor: in mode "serial" batches and held
                acknowledgement are left out with a warning, as JMSJCA does it without one.

        Raises:
            InvalidActivationSpecError: Properties are wrong, or unknown; every one is listed.
        """
        fields = fields_from_properties(properties)
        return ActivationSpec(**dict(_DescriptorSpec(**fields))) if from_descriptor else cls(**fields)

    def __hash__(self) -> int:  # pydantic's own fails, as options are a dict
        return hash((self.destination, self.destination_type, self.subscription_name))

    @property
    def durable(self) -> bool:
        """True for a durable subscription of a topic."""
        return self.destination_type == "topic" and self.subscription_durability == "Durable"

    @property
    def distributed(self) -> DistributedSubscription | None:
        """What a subscription name that begins with ``jmsjca://`` says; None for a usual subscription."""
        return DistributedSubscription.parse(self.subscription_name or "") if self.durable else None

    @property
    def subscriber_name(self) -> str | None:
        """The name of the subscription as the broker knows it."""
        distributed = self.distributed
        return distributed.subscriber_name if distributed else self.subscription_name

    def source(self) -> Destination | Subscription:
        """What the consumer of this spec consumes from; of a distributed subscription, what is read from the topic."""
        if self.destination_type == "queue":
            return Queue(self.destination)
        topic = Topic(self.destination)
        return Subscription(topic, self.subscriber_name, self.effective_client_id) if self.durable else topic

    @property
    def effective_client_id(self) -> str | None:
        """The client id to connect with: the given one, else one made from a durable subscription's name."""
        if self.client_id or not self.durable:
            return self.client_id
        return f"CLIENTID-{self.subscriber_name}"

    @property
    def redelivery_policy(self) -> RedeliveryPolicy:
        """The redelivery handling, for messages of this destination."""
        return RedeliveryPolicy.parse(self.redelivery_handling, self.destination, self.destination_type)

    @property
    def inbound_options(self) -> InboundOptions:
        """The options that are no fields.

        Raises:
            InvalidOptionError: A value cannot be used.
        """
        return InboundOptions.of(self.options)

    def dump(self) -> str:
        """Give all fields as lines of text, without secrets: what the management bean shows."""
        return describe(dict(self), self.options)

    @model_validator(mode="before")
    @classmethod
    def _split_destination(cls, fields: dict[str, Any]) -> dict[str, Any]:
        destination = fields.get("destination")
        if not isinstance(destination, Destination):
            return fields
        return {**fields, "destination": destination.name, "destination_type": destination.kind}

    @field_validator("subscription_name")
    @classmethod
    def _check_subscription_name(cls, name: str | None, others: ValidationInfo) -> str | None:
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
    def _check_needs_concurrency(cls, value: int, others: ValidationInfo) -> int:
        on = value > 1 or value is True
        return cls._unsupported_in_serial(value, others) if on and _effective_mode(others.data) == "serial" else value

    @classmethod
    def _unsupported_in_serial(cls, value: int, others: ValidationInfo) -> int:
        del value, others
        raise ValueError("mode 'serial' has neither batches nor held acknowledgement: use 'sync' or 'cc'")

    @field_validator("acknowledgement_timeout")
    @classmethod
    def _check_acknowledgement_timeout(cls, timeout: float | None, others: ValidationInfo) -> float | None:
        if timeout is not None and others.data.get("hold_until_ack") is False:
            raise ValueError("nothing waits for an acknowledgement: set hold_until_ack as well")
        return timeout


class _DescriptorSpec(ActivationSpec):
    """Leaves out, with a warning, what the mode does not have."""

    @classmethod
    def _unsupported_in_serial(cls, value: int, others: ValidationInfo) -> int:
        name, destination = others.field_name, others.data.get("destination")
        logger.warning("%s is ignored for %s: mode 'serial' has none; use 'sync' or 'cc'.", name, destination)
        return type(value)()


_SECRET = ("password", "connection_url", "options")
_CONSEQUENTIAL = "default_factory_not_called"  # another field is wrong, and told


def _destination_conflicts(fields: Mapping[str, object]) -> Iterator[str]:
    """Tell what contradicts a destination that says itself what it is."""
    destination = fields.get("destination")
    if isinstance(destination, Destination) and fields.get("destination_type", destination.kind) != destination.kind:
        kind = excerpt(fields["destination_type"])
        yield f"destination_type is {kind!r}, but the destination is {excerpt(destination)}"


def _explain(error: ValidationError, known: Collection[str]) -> Iterator[str]:
    """Tell each thing that is wrong, with its field.

    Args:
        error: What was found.
        known: The names of the fields.
    """
    for detail in error.errors(include_url=False):
        if detail["type"] != _CONSEQUENTIAL:
            yield _explanation(detail, known)


def _explanation(detail: ErrorDetails, known: Collection[str]) -> str:
    given, field = detail["input"], str(detail["loc"][0]) if detail["loc"] else ""
    if isinstance(given, InvalidProperty):
        return given.text
    if detail["type"] == "extra_forbidden":
        return f"{excerpt(field)}: there is no such field (there are {', '.join(known)})"
    text = detail["msg"].removeprefix("Value error, ").removesuffix(".")
    told = (
        "" if detail["type"] in ("missing", "value_error") or field in _SECRET else f" (given: {excerpt(given, 100)!r})"
    )
    return f"{field}: {text}{told}"


def merge_options(*options: Mapping[str, str], url: str | None) -> dict[str, str]:
    """Bring options together; of an option that is given twice the later value counts, and JMSJCA's in a URL last.

    Args:
        options: JMSJCA's in their own spelling.
        url: The connection URL that is used, if any.

    Raises:
        InvalidURLError: The URL does not parse.
        InvalidOptionError: The URL has an option that begins with ``JMSJCA.`` and does not exist.
    """
    merged = {name: value for some in options for name, value in some.items()}
    return merged | (jmsjca_options(ConnectionURL.parse(url).query) if url else {})
