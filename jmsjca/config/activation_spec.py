"""The activation spec: its fields, their validation, and the effective spec after all options were applied."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Literal, Required, TypedDict, Unpack, cast

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

from jmsjca.arguments import MAX_INT, did_you_mean, enum_member
from jmsjca.config.connection_url import ConnectionURL, add_options, is_url
from jmsjca.config.deployment_descriptor import InvalidProperty, Properties
from jmsjca.config.distributed_subscription import DistributedSubscription
from jmsjca.config.limits import UNITS_PER_HANDLER, AcknowledgeMode
from jmsjca.config.options import InboundOptions, jmsjca_options, parse_options, provider_options, read_options
from jmsjca.destinations import BLANK_NAME, Destination, DestinationKind, Queue, Subscription, Topic, named_destination
from jmsjca.errors import InvalidActivationSpecError, InvalidDestinationError, InvalidOptionError, excerpt
from jmsjca.log_records import get_logger
from jmsjca.redelivery import DEFAULT_REDELIVERY_HANDLING, RedeliveryPolicy
from jmsjca.selectors import build_selector
from jmsjca.selectors.syntax import Value
from jmsjca.selectors.template import check_variables

__all__ = [
    "ActivationSpec",
    "ActivationSpecFields",
    "ConcurrencyMode",
    "Flag",
    "ListenerAcknowledgeMode",
    "ListenerFields",
    "Number",
    "Options",
    "RedeliveryHandlingText",
    "Seconds",
    "SelectorVariables",
    "URLText",
    "check_fields_are_used",
    "field_of",
    "merge_options",
    "resolve_spec",
]

logger = get_logger("jmsjca.config")


class Accepts(str):
    """The annotation of a field if its keyword accepts more types than the field has, as Python code."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _Conflict:
    """A value that a field must not have.

    Attributes:
        field: The field.
        wrong: Returns True for such a value, given the fields declared above.
        text: The error message.
    """

    field: str
    wrong: Callable[[Any, Mapping[str, Any]], object]
    text: str


def _refusing(wrong: Callable[[Any], object], text: str) -> Callable[[Any], Any]:
    """Return a validator that refuses some values. In the error message ``{}`` is replaced by the value."""

    def accepted(value: Any) -> Any:
        """Return an accepted value."""
        if wrong(value):
            raise ValueError(text.format(value))
        return value

    return accepted


def _accepted_by(parse: Callable[[Any], object]) -> AfterValidator:
    """Return a validator that refuses values for which a parser raises an error."""

    def accepted(value: Any) -> Any:
        """Return an accepted value."""
        parse(value)
        return value

    return AfterValidator(accepted)


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


def _parse_acknowledge_mode(value: object) -> object:
    return enum_member("acknowledge_mode", value, AcknowledgeMode) if isinstance(value, str) else value


URLText = Annotated[str, _accepted_by(lambda text: jmsjca_options(ConnectionURL.parse(text).query))]
"""A connection URL with JMSJCA options that exist."""

ConcurrencyMode = Annotated[
    Literal["serial", "cc", "sync"],
    BeforeValidator(
        _refusing(
            lambda mode: mode == "multi-receiver",
            "'multi-receiver' is not implemented; use 'sync' or 'cc'",
        )
    ),
    BeforeValidator(lambda mode: mode.lower() if isinstance(mode, str) else mode),
]
"""A concurrency mode, in upper or lower case."""

Flag = Annotated[bool, BeforeValidator(_parse_flag)]
"""A boolean. Of texts, only "1" and "true" are True, in upper or lower case."""

Options = Annotated[
    dict[str, str],
    Accepts("str | Mapping[str, str] | None"),
    BeforeValidator(_parse_options_text),
    AfterValidator(read_options),
]
"""Options, from text or a mapping."""

ListenerAcknowledgeMode = Annotated[
    AcknowledgeMode,
    Accepts('Literal[AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK, "AUTO", "DUPS_OK"]'),
    BeforeValidator(
        _refusing(
            lambda mode: mode not in (AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK),
            "it must be AcknowledgeMode.AUTO or DUPS_OK; hold_until_ack=True lets the handler acknowledge",
        )
    ),
    BeforeValidator(_parse_acknowledge_mode),
]
"""The acknowledge mode of a listener: AUTO or DUPS_OK."""

RedeliveryHandlingText = Annotated[
    str,
    _accepted_by(RedeliveryPolicy.parse),
    BeforeValidator(
        _refusing(lambda value: isinstance(value, RedeliveryPolicy), "it must be the text of a policy: str(policy)")
    ),
]
"""A redelivery handling that parses."""

SelectorVariables = Annotated[
    dict[str, Value],
    Accepts("Mapping[str, str | bool | int | float]"),
    BeforeValidator(lambda value: provider_options(parse_options(value)) if isinstance(value, str) else value),
    _accepted_by(check_variables),
]
"""Values by the names that the selector may use. Values from text, in the format of options, are strings."""

NameText = Annotated[str, AfterValidator(_refusing(str.isspace, BLANK_NAME))]
"""The name of a destination, which is not blank."""

Number = BeforeValidator(_refusing(lambda value: isinstance(value, bool), "it must be a number, not {}"))
"""The annotation of a number: pydantic would accept True as 1."""

in_seconds = BeforeValidator(lambda value: value.total_seconds() if isinstance(value, timedelta) else value)
Seconds = Annotated[float, Number, in_seconds, Field(gt=0, le=1e9, allow_inf_nan=False)]
"""A duration in seconds, above 0."""


def _units_of_all_handlers(fields: dict[str, Any]) -> int:
    handlers = fields.get("endpoint_pool_max_size", 1)  # absent if its value is invalid; that error is reported
    return UNITS_PER_HANDLER * int(handlers)


def _effective_mode(fields: Mapping[str, Any]) -> str | None:
    options = merge_options(fields.get("options", {}), url=fields.get("connection_url"))
    return options.get("JMSJCA.concurrencymode", "").lower() or fields.get("concurrency_mode")


def _is_durable(fields: Mapping[str, Any]) -> bool:
    return fields.get("destination_type") == "topic" and fields.get("subscription_durability") == "Durable"


_CONFLICTS = (
    _Conflict("user_name", lambda name, _: is_url(name), "it is a URL: name the broker in connection_url"),
    _Conflict(
        "subscription_durability",
        lambda durability, others: durability == "Durable" and others.get("destination_type") == "queue",
        "a queue keeps its messages without a subscription: leave it out, or name a topic",
    ),
    _Conflict(
        "subscription_durable",
        lambda durable, others: (
            durable is not None and durable != (others.get("subscription_durability", "Durable") == "Durable")
        ),
        "it contradicts subscription_durability: leave out one of them",
    ),
    _Conflict(
        "subscription_shared",
        lambda shared, others: shared and others.get("destination_type") == "queue",
        "all consumers of a queue share its messages: leave it out, or name a topic",
    ),
    _Conflict(
        "subscription_name",
        lambda name, others: not name and (_is_durable(others) or others.get("subscription_shared")),
        "it is missing: a durable or shared subscription of a topic needs one",
    ),
    _Conflict(
        "subscription_name",
        lambda name, others: name and others.get("subscription_shared") and name.startswith("jmsjca://"),
        "processes share the queue of a distributed subscription: leave out subscription_shared, or give a plain name",
    ),
    _Conflict(
        "concurrency_mode",
        lambda mode, others: mode == "serial" and (others.get("concurrency") or 1) > 1,
        "'serial' has one handler: leave out concurrency_mode or concurrency",
    ),
    _Conflict(
        "endpoint_pool_max_size",
        lambda size, others: others.get("concurrency") not in {None, size},
        "concurrency has another number of handlers: leave out one of them",
    ),
    _Conflict(
        "subscription_name",
        lambda name, others: (
            name
            and others.get("destination_type") == "topic"
            and DistributedSubscription.parse(name)
            and not _is_durable(others)
        ),
        "a distributed subscription must be durable: set subscription_durability to 'Durable'",
    ),
    _Conflict(
        "acknowledgement_timeout",
        lambda timeout, others: timeout is not None and others.get("hold_until_ack") is False,
        "it has no effect without held acknowledgement: set hold_until_ack as well",
    ),
)


def _prefixed(text: str) -> object:
    """Return the destination of ``queue:name`` or ``topic:name``; any other text unchanged."""
    try:
        return named_destination(text) if text.startswith(("queue:", "topic:")) else text
    except InvalidDestinationError as error:
        raise ValueError(str(error)) from error


def _chosen(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that ``concurrency`` and ``subscription_durable`` choose; those that are given count."""
    chosen: dict[str, Any] = {}
    if str(given.get("subscription_durable")).lower() in {"true", "1"}:
        chosen["subscription_durability"] = "Durable"
    handlers = given.get("concurrency")
    if handlers is not None:
        is_single = str(handlers) == "1" and not given.get("hold_until_ack") and not given.get("batch_size")
        chosen |= {"concurrency_mode": "serial" if is_single else "cc"}
        chosen |= {"endpoint_pool_max_size": handlers} if str(handlers).isdecimal() and int(handlers) else {}
    return chosen


class ActivationSpec(BaseModel):
    """The configuration of a listener: its destination, and how its messages are delivered (JCA 1.6, section 13.4).

    Only this class declares the type, default, range, meaning and property of each field. `ListenerFields`, the JSON
    schema and the documentation are generated from it. The serialization alias is the property of JMSJCA's manual.

    Raises:
        InvalidActivationSpecError: Fields are invalid; the message lists all of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, use_attribute_docstrings=True)

    # A validator only sees the fields declared above its own, so their order matters.
    destination: Annotated[NameText, Accepts("str | Destination")] = Field(
        min_length=1, serialization_alias="destination"
    )
    """The name of the destination, or a `Queue` or a `Topic`. A member of an ``Enum`` of texts stands for its value.
    Without a ``destination_type``, ``topic:news`` names a topic, and ``queue:topic:news`` the queue ``topic:news``."""

    destination_type: DestinationKind = Field(default="queue", serialization_alias="destinationType")
    """The kind, "queue" or "topic". A `Queue` or `Topic` as destination determines it."""

    connection_url: URLText | None = Field(
        default=None,
        serialization_alias="ConnectionURL",
        repr=False,  # may hold a password
    )
    """The URL of the broker; None uses the URL of the resource adapter."""

    user_name: str | None = Field(default=None, serialization_alias="UserName")
    """The user name; None uses the user name and password of the resource adapter."""

    password: Annotated[SecretStr | None, Accepts("str | SecretStr | None")] = Field(
        default=None, serialization_alias="Password"
    )
    """The password of ``user_name``; ignored without a user name."""

    client_id: str | None = Field(default=None, serialization_alias="ClientId")
    """The client id of the connection; the default for a durable subscription that is not shared is ``CLIENTID-`` and
    its name."""

    options: Options = Field(
        default_factory=dict[str, str],
        serialization_alias="Options",
        repr=False,  # may hold secrets of the provider
    )
    """Options of the provider, and options of JMSJCA, which override fields: a mapping, or text as in the manual."""

    selector: str | None = Field(default=None, serialization_alias="selector")
    """A message selector; it may contain ``${subscribername}`` and the names of ``selector_variables``."""

    selector_variables: SelectorVariables = Field(
        default_factory=dict[str, Value], serialization_alias="selectorVariables"
    )
    """The values of ``${name}`` in the selector, also in the option ``JMSJCA.selector``.

    A value is inserted as a literal of the selector language; within quotes it is inserted as text, with its quotes
    doubled. If the values are given as text, in the format of options, all of them are strings.
    """

    subscription_durability: Literal["Durable", "NonDurable"] = Field(
        default="NonDurable", serialization_alias="subscriptionDurability"
    )
    """"Durable" or "NonDurable", in exactly this spelling; only for topics."""

    subscription_durable: Flag | None = Field(default=None, serialization_alias="subscriptionDurable")
    """True for "Durable" as ``subscription_durability``, False for "NonDurable"; None leaves it to that field."""

    subscription_shared: Flag = Field(default=False, serialization_alias="subscriptionShared")
    """True if processes share the subscription of a topic: each message goes to one of them (JMS 3.1, section 8.3.2).
    It has a name, and needs no client id."""

    subscription_name: str | None = Field(default=None, serialization_alias="subscriptionName", validate_default=True)
    """The name of a durable or shared subscription, or ``jmsjca://?distribution=1&subscribername=…``."""

    concurrency: Annotated[int, Number] | None = Field(
        default=None, serialization_alias="concurrency", ge=1, le=MAX_INT
    )
    """The number of concurrent handlers. It chooses the mode and the pool: 1 means mode "serial", or "cc" with batches
    or held acknowledgement; a larger number mode "cc". None leaves that to the next two fields."""

    concurrency_mode: ConcurrencyMode = Field(default="serial", serialization_alias="ConcurrencyMode")
    """The delivery mode, in upper or lower case: "serial" delivers one message after the other, in order; "sync" has
    several receivers; "cc" has one consumer that feeds several handlers."""

    endpoint_pool_max_size: Annotated[int, Number] = Field(
        default=15, serialization_alias="endpointPoolMaxSize", ge=1, le=MAX_INT
    )
    """The maximum number of concurrent handlers, in modes "sync" and "cc"."""

    rate_limit: Annotated[float, Number] | None = Field(
        default=None, serialization_alias="rateLimit", gt=0, le=1e9, allow_inf_nan=False
    )
    """The maximum number of messages a second, on average over some seconds, in all handlers of this listener; None
    for no limit. Other messages stay at the broker, as far as they are not prefetched."""

    batch_size: Annotated[int, Number] = Field(default=0, serialization_alias="BatchSize", ge=0, le=MAX_INT)
    """The maximum number of messages in one unit of work, in modes "sync" and "cc". 0 and 1 disable batches."""

    split_failed_batches: Flag = Field(default=False, serialization_alias="splitFailedBatches")
    """True to redeliver the messages of a rolled-back batch one by one, so that one bad message does not hold up the
    good ones."""

    hold_until_ack: Flag = Field(default=False, serialization_alias="HoldUntilAck")
    """True to keep each unit of work open until its messages are acknowledged, by the handler or by other code. Not in
    mode "serial"."""

    acknowledgement_timeout: Annotated[Seconds | None, Accepts("float | timedelta | None")] = Field(
        default=None, serialization_alias="acknowledgementTimeout"
    )
    """Seconds after which a held unit without acknowledgement is rolled back; None means never."""

    max_outstanding: Annotated[int, Number] = Field(
        default_factory=_units_of_all_handlers, serialization_alias="maxOutstanding", ge=1, le=MAX_INT
    )
    """The maximum number of open units; the default is 10 times ``endpoint_pool_max_size``."""

    redelivery_handling: RedeliveryHandlingText = Field(
        default=DEFAULT_REDELIVERY_HANDLING, serialization_alias="RedeliveryHandling"
    )
    """The actions for redelivered messages, in the syntax of `RedeliveryPolicy.parse`; empty for no actions."""

    transaction: Literal["local", "required", "bean", "none"] = Field(
        default="local", serialization_alias="transaction"
    )
    """The transaction. "local": the receipt and the sends of the handler's session commit together. "required": so do
    the database sessions that the handler joins to its transaction. "bean": only the receipt is transacted, and the
    handler's session sends at once. "none": as "bean", but ``acknowledge_mode`` applies."""

    acknowledge_mode: ListenerAcknowledgeMode = Field(
        default=AcknowledgeMode.AUTO, serialization_alias="acknowledgeMode"
    )
    """AUTO or DUPS_OK; used only if ``transaction`` is "none"."""

    context_name: str | None = Field(default=None, serialization_alias="ContextName")
    """A name to log before and after each call of the handler; None logs nothing."""

    mbean_name: str | None = Field(default=None, serialization_alias="MBeanName")
    """The name of the management bean; None registers no bean."""

    def __init__(self, **fields: "Unpack[ActivationSpecFields]") -> None:
        problems = list(_destination_conflicts(fields))
        try:
            super().__init__(**fields)
        except ValidationError as error:
            problems += _explain(error, type(self).model_fields)
        if problems:
            raise InvalidActivationSpecError(f"The activation spec is wrong: {'; '.join(problems)}.")

    @classmethod
    def from_properties(cls, properties: Mapping[str, object], *, from_descriptor: bool = False) -> "ActivationSpec":
        """Return a spec from properties in the spelling of JMSJCA's manual.

        Args:
            properties: For example ``{"destination": "orders", "destinationType": "javax.jms.Queue"}``. Names are not
                case-sensitive. Properties that JMSJCA checks but does not use are accepted. Values are converted with
                `str`.
            from_descriptor: True for the properties of a deployed descriptor: in mode "serial", batches and held
                acknowledgement are ignored with a warning. (JMSJCA ignores them without a warning.)

        Raises:
            InvalidActivationSpecError: Properties are invalid or unknown; the message lists all of them.
        """
        fields = _PROPERTIES.to_fields(properties)
        return ActivationSpec(**dict(_DescriptorSpec(**fields))) if from_descriptor else cls(**fields)

    def __hash__(self) -> int:  # pydantic's own hash fails, because options are a dict
        return hash((self.destination, self.destination_type, self.subscription_name))

    @property
    def durable(self) -> bool:
        """True for a durable subscription of a topic."""
        return self.destination_type == "topic" and self.subscription_durability == "Durable"

    @property
    def distributed(self) -> DistributedSubscription | None:
        """The parsed subscription name if it begins with ``jmsjca://``; None for an ordinary subscription."""
        return DistributedSubscription.parse(self.subscription_name or "") if self.durable else None

    @property
    def subscriber_name(self) -> str | None:
        """The name of the subscription as the broker knows it."""
        distributed = self.distributed
        return distributed.subscriber_name if distributed else self.subscription_name

    def source(self) -> Destination | Subscription:
        """Return the source of the consumer; for a distributed subscription, the source of the topic reader."""
        if self.destination_type == "queue":
            return Queue(self.destination)
        topic, shared = Topic(self.destination), self.subscription_shared
        if not (self.durable or shared):
            return topic
        return Subscription(
            topic, self.subscriber_name, self.effective_client_id, shared=shared, volatile=not self.durable
        )

    @property
    def effective_client_id(self) -> str | None:
        """The client id of the connection: the configured one, else one made from the durable subscription's name."""
        if self.client_id or not self.durable or self.subscription_shared:
            return self.client_id
        return f"CLIENTID-{self.subscriber_name}"

    @property
    def redelivery_policy(self) -> RedeliveryPolicy:
        """The parsed redelivery handling, for messages of this destination."""
        return RedeliveryPolicy.parse(self.redelivery_handling, self.destination, self.destination_type)

    @property
    def inbound_options(self) -> InboundOptions:
        """The options that do not override a field.

        Raises:
            InvalidOptionError: A value is invalid.
        """
        return InboundOptions.of(self.options)

    def dump(self) -> str:
        """Return all fields as lines of text, without secrets, for the management bean."""
        return _PROPERTIES.describe(dict(self))

    @model_validator(mode="before")
    @classmethod
    def _split_destination(cls, fields: object) -> object:
        given = cast("dict[str, Any]", fields) if isinstance(fields, dict) else {}
        destination = given.get("destination")
        if isinstance(destination, str) and given.keys().isdisjoint({"destination_type", "destinationType"}):
            destination = _prefixed(destination)
        if isinstance(destination, Destination):
            given = {**given, "destination": destination.name, "destination_type": destination.kind}
        return {**_chosen(given), **given} if given else fields  # pyright: ignore[reportUnknownVariableType]

    @field_validator(*{conflict.field for conflict in _CONFLICTS})
    @classmethod
    def _find_conflict(cls, value: Any, others: ValidationInfo) -> Any:
        for conflict in _CONFLICTS:
            if conflict.field == others.field_name and conflict.wrong(value, others.data):
                raise ValueError(conflict.text)
        return value

    @field_validator("batch_size", "hold_until_ack")
    @classmethod
    def _find_mode_conflict(cls, value: int, others: ValidationInfo) -> int:
        on = value > 1 or value is True
        return cls._unsupported_in_serial(value, others) if on and _effective_mode(others.data) == "serial" else value

    @classmethod
    def _unsupported_in_serial(cls, value: int, others: ValidationInfo) -> int:
        del value, others
        raise ValueError("mode 'serial' has neither batches nor held acknowledgement: use 'sync' or 'cc'")


class _DescriptorSpec(ActivationSpec):
    """A spec from a descriptor: fields that mode "serial" does not support are ignored with a warning."""

    @classmethod
    def _unsupported_in_serial(cls, value: int, others: ValidationInfo) -> int:
        name, destination = others.field_name, others.data.get("destination")
        logger.warning("%s is ignored for %s: mode 'serial' has none; use 'sync' or 'cc'.", name, destination)
        return type(value)()


_PROPERTIES = Properties({str(field.serialization_alias): name for name, field in ActivationSpec.model_fields.items()})

field_of = _PROPERTIES.field_of


_SECRET = ("user_name", "password", "connection_url", "options")  # a user name may be a pair or a URL with a password
_CONSEQUENTIAL = "default_factory_not_called"  # the field that it depends on is invalid, and is reported itself


def _destination_conflicts(fields: Mapping[str, object]) -> Iterator[str]:
    """Yield a problem if the type contradicts a destination that is a `Queue` or a `Topic`."""
    destination = fields.get("destination")
    if isinstance(destination, Destination) and fields.get("destination_type", destination.kind) != destination.kind:
        kind = excerpt(fields["destination_type"])
        yield f"destination_type is {kind!r}, but the destination is {excerpt(destination)}"


def _explain(error: ValidationError, known: Collection[str]) -> Iterator[str]:
    """Yield one problem per invalid field, with the field's name.

    Args:
        error: The error of the validation.
        known: The names of all fields.
    """
    for detail in error.errors(include_url=False):
        if detail["type"] != _CONSEQUENTIAL:
            yield _explanation(detail, known)


def _explanation(detail: ErrorDetails, known: Collection[str]) -> str:
    given, field = detail["input"], str(detail["loc"][0]) if detail["loc"] else ""
    if isinstance(given, InvalidProperty):
        return given.text
    if detail["type"] == "extra_forbidden":
        names = {name: name for name in known}
        return f"{excerpt(field)}: there is no such field {did_you_mean(field.lower(), names)}"
    text = detail["msg"].removeprefix("Value error, ").removesuffix(".")
    given_text = (
        "" if detail["type"] in ("missing", "value_error") or field in _SECRET else f" (given: {excerpt(given, 100)!r})"
    )
    return f"{field}: {text}{given_text}"


def merge_options(*options: Mapping[str, str], url: str | None) -> dict[str, str]:
    """Merge options. Later mappings override earlier ones, and JMSJCA's options in the URL override all of them.

    Args:
        options: The options. JMSJCA's options have their canonical spelling.
        url: The connection URL in use; None if there is no URL.

    Raises:
        InvalidURLError: The URL does not parse.
        InvalidOptionError: The URL has an unknown option that begins with ``JMSJCA.``.
    """
    merged = {name: value for some in options for name, value in some.items()}
    return merged | (jmsjca_options(ConnectionURL.parse(url).query) if url else {})


_REPLACING = {
    "JMSJCA.concurrencymode": "concurrency_mode",
    "JMSJCA.redeliveryhandling": "redelivery_handling",
}
_SELECTOR = "JMSJCA.selector"
_SEPARATOR = re.compile(r"[,;&|\s]")


def resolve_spec(
    spec: ActivationSpec, adapter_options: str | Mapping[str, str] | None = None, adapter_url: str | None = None
) -> ActivationSpec:
    """Return the effective spec: applies the options to its fields, and replaces the placeholders of its selector.

    Options override fields. The options of the URL override the options of the spec, and these override the options of
    the adapter. Only one URL is used: the URL of the spec, or else the URL of the adapter.

    Args:
        spec: The spec as the application wrote it, not a result of this function.
        adapter_options: The options of the resource adapter.
        adapter_url: The URL of the resource adapter.

    Returns:
        A spec with all effective options in ``options``, and the URL in use as ``connection_url``, with the provider's
        options added.

    Raises:
        InvalidURLError: The adapter's URL does not parse.
        InvalidOptionError: An option is unknown, or its value is invalid.
        InvalidSelectorError: A placeholder of the selector is not closed.
        InvalidActivationSpecError: Fields are invalid with the options applied; the message lists all of them.
    """
    url = spec.connection_url or adapter_url
    options = merge_options(read_options(adapter_options), spec.options, url=url)
    inbound = InboundOptions.of(options)  # raises on invalid values
    changes: dict[str, object] = {
        "options": options,
        "concurrency": None,  # an option may choose another mode
        "connection_url": add_options(url, provider_options(options)) if url else None,
        "selector": _selector(spec, options),
    }
    if inbound.bean_managed and spec.transaction == "required":
        changes["transaction"] = "bean"
    return _with_changes(spec, changes, {name: options[name] for name in _REPLACING if _is_set(options, name)})


def check_fields_are_used(spec: ActivationSpec, effective: ActivationSpec) -> None:
    """Raise an error if the spec of a listener has a pool of handlers, or a subscription, that is not used.

    Args:
        spec: The spec as the application wrote it.
        effective: The result of `resolve_spec` for it.

    Raises:
        InvalidActivationSpecError: The mode is "serial", and the spec names a pool of more than one handler; or a
            subscription of a topic has a name, which no selector uses, and is neither durable nor shared.
    """
    named = spec.subscription_name if effective.destination_type == "topic" else None
    if named and not (
        effective.durable or effective.subscription_shared or "${" in f"{spec.selector}{effective.options}"
    ):
        raise InvalidActivationSpecError(
            f"subscription_name={named!r:.200} has no effect: the subscription ends with the listener, and misses what "
            "is sent until the next start. Add subscription_durable=True, or leave the name out."
        )
    size = spec.endpoint_pool_max_size
    if effective.concurrency_mode == "serial" and size > 1 and "endpoint_pool_max_size" in spec.model_fields_set:
        raise InvalidActivationSpecError(
            f"endpoint_pool_max_size={size} has no effect in mode 'serial', the default, which has one handler: write "
            f"concurrency={size} instead, or add concurrency_mode='cc'."
        )


def _with_changes(spec: ActivationSpec, changes: Mapping[str, object], replacing: Mapping[str, str]) -> ActivationSpec:
    replaced = {_REPLACING[name]: value for name, value in replacing.items()}
    fields: dict[str, Any] = {**dict(spec), **changes, **replaced}
    try:
        return ActivationSpec(**fields)
    except InvalidActivationSpecError as error:
        problem = str(error)
    # Raised here, outside the handler: a chained exception would contain the whole value.
    for name, value in replacing.items():
        if _has_next_option(value):
            raise InvalidOptionError(
                f"The value of {name} seems to contain the next option: end each option with its line, or begin the"
                " options with JMSJCA.sep= and the character that separates them."
            )
    raise InvalidActivationSpecError(f"With {', '.join(replacing)} from the options in force: {problem}")


def _has_next_option(value: str) -> bool:
    """Return whether a value seems to contain further options that were not separated (one may be a password)."""
    front, equals, _ = value.partition("=")
    return bool(equals and _SEPARATOR.search(front))


def _selector(spec: ActivationSpec, options: Mapping[str, str]) -> str | None:
    template = options[_SELECTOR] if _is_set(options, _SELECTOR) else spec.selector
    if not template or not template.strip():
        return None
    return build_selector(
        template, spec.selector_variables, selector=spec.selector, subscriber_name=spec.subscriber_name
    )


def _is_set(options: Mapping[str, str], name: str) -> bool:
    return bool(options.get(name, "").strip())


# Made from the fields of `ActivationSpec` by `python -m tests.support.spec_fields`: do not edit.


class ListenerFields(TypedDict, total=False):
    """The fields of an `ActivationSpec` without its destination: the keywords of `ResourceAdapter.listener`.

    `ActivationSpec` documents them. Validation also accepts what type checkers refuse here: texts in other letters, and
    numbers as text, as configuration files hold them.
    """

    destination_type: Literal["queue", "topic"]
    connection_url: str | None
    user_name: str | None
    password: str | SecretStr | None
    client_id: str | None
    options: str | Mapping[str, str] | None
    selector: str | None
    selector_variables: Mapping[str, str | bool | int | float]
    subscription_durability: Literal["Durable", "NonDurable"]
    subscription_durable: bool | None
    subscription_shared: bool
    subscription_name: str | None
    concurrency: int | None
    concurrency_mode: Literal["serial", "cc", "sync"]
    endpoint_pool_max_size: int
    rate_limit: float | None
    batch_size: int
    split_failed_batches: bool
    hold_until_ack: bool
    acknowledgement_timeout: float | timedelta | None
    max_outstanding: int
    redelivery_handling: str
    transaction: Literal["local", "required", "bean", "none"]
    acknowledge_mode: Literal[AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK, "AUTO", "DUPS_OK"]
    context_name: str | None
    mbean_name: str | None


class ActivationSpecFields(ListenerFields, total=False):
    """All fields of an `ActivationSpec`: its keywords."""

    destination: Required[str | Destination]
