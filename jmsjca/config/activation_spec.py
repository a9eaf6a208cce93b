"""The activation spec: its fields, their validation, and the effective spec after all options are applied."""

import re
from collections.abc import Collection, Iterator, Mapping
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
from jmsjca.config.connection_url import ConnectionURL, add_options
from jmsjca.config.credentials import is_url
from jmsjca.config.deployment_descriptor import InvalidProperty, describe, fields_from_properties
from jmsjca.config.distributed_subscription import DistributedSubscription
from jmsjca.config.limits import UNITS_PER_HANDLER, AcknowledgeMode
from jmsjca.config.options import InboundOptions, jmsjca_options, parse_options, provider_options, read_options
from jmsjca.destinations import BLANK_NAME, Destination, DestinationKind, Queue, Subscription, Topic
from jmsjca.errors import InvalidActivationSpecError, InvalidOptionError, excerpt
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
    "merge_options",
    "resolve_spec",
]

logger = get_logger("jmsjca.config")


class ListenerFields(TypedDict, total=False):
    """The fields of an `ActivationSpec` without its destination: the keywords of `ResourceAdapter.listener`.

    `ActivationSpec` documents them. Validation also accepts what type checkers refuse here: texts in other letters, and
    numbers as text, as configuration files hold them.
    """

    destination_type: DestinationKind
    connection_url: str | None
    user_name: str | None
    password: "str | SecretStr | None"
    client_id: str | None
    options: str | Mapping[str, str] | None
    selector: str | None
    selector_variables: Mapping[str, str | bool | int | float]
    subscription_durability: Literal["Durable", "NonDurable"]
    subscription_name: str | None
    concurrency_mode: Literal["serial", "cc", "sync"]
    endpoint_pool_max_size: int
    batch_size: int
    split_failed_batches: bool
    hold_until_ack: bool
    acknowledgement_timeout: float | None
    max_outstanding: int
    redelivery_handling: str
    transaction: Literal["local", "required", "bean", "none"]
    acknowledge_mode: Literal[AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK, "AUTO", "DUPS_OK"]
    context_name: str | None
    mbean_name: str | None


class ActivationSpecFields(ListenerFields, total=False):
    """All fields of an `ActivationSpec`: its keywords."""

    destination: Required[str | Destination]


def _validate_url(text: str) -> str:
    jmsjca_options(ConnectionURL.parse(text).query)
    return text


def _validate_name(name: str) -> str:
    if name.isspace():
        raise ValueError(BLANK_NAME)
    return name


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


def _refuse_flag(value: object) -> object:
    if isinstance(value, bool):  # which is an int
        raise ValueError(f"it must be a number, not {value}")  # noqa: TRY004  # pydantic reports no other
    return value


def _parse_options_text(value: object) -> object:
    if isinstance(value, str):
        return parse_options(value)
    return {} if value is None else value


def _validate_acknowledge_mode(value: object) -> object:
    mode = enum_member("acknowledge_mode", value, AcknowledgeMode) if isinstance(value, str) else value
    if mode in (AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK):
        return mode
    raise ValueError("it must be AcknowledgeMode.AUTO or DUPS_OK; hold_until_ack=True lets the handler acknowledge")


def _validate_redelivery_handling(handling: str) -> str:
    RedeliveryPolicy.parse(handling)
    return handling


def _parse_variables(value: object) -> object:
    return provider_options(parse_options(value)) if isinstance(value, str) else value


def _validate_selector_variables(variables: dict[str, Value]) -> dict[str, Value]:
    check_variables(variables)
    return variables


URLText = Annotated[str, AfterValidator(_validate_url)]
"""A connection URL with JMSJCA options that exist."""

ConcurrencyMode = Annotated[Literal["serial", "cc", "sync"], BeforeValidator(_parse_mode)]
"""A concurrency mode, in upper or lower case."""

Flag = Annotated[bool, BeforeValidator(_parse_flag)]
"""A boolean; of texts only "1" and "true", in upper or lower case, are True."""

Options = Annotated[dict[str, str], BeforeValidator(_parse_options_text), AfterValidator(read_options)]
"""Options, from text or a mapping."""

ListenerAcknowledgeMode = Annotated[AcknowledgeMode, BeforeValidator(_validate_acknowledge_mode)]
"""The acknowledge mode of a listener: AUTO or DUPS_OK."""

RedeliveryHandlingText = Annotated[str, AfterValidator(_validate_redelivery_handling)]
"""A redelivery handling that parses."""

SelectorVariables = Annotated[
    dict[str, Value], BeforeValidator(_parse_variables), AfterValidator(_validate_selector_variables)
]
"""Values by the names that the selector may refer to; from text, as options, they are strings."""

NameText = Annotated[str, AfterValidator(_validate_name)]
"""The name of a destination, which is not blank."""

Number = BeforeValidator(_refuse_flag)
"""The annotation of a number: pydantic would take True for 1."""

Seconds = Annotated[float, Number, Field(gt=0, le=1e9, allow_inf_nan=False)]
"""A duration in seconds, above 0."""


def _units_of_all_handlers(fields: dict[str, Any]) -> int:
    handlers = fields.get("endpoint_pool_max_size", 1)  # absent if its value is invalid, which is reported
    return UNITS_PER_HANDLER * int(handlers)


def _effective_mode(fields: Mapping[str, Any]) -> str | None:
    options = merge_options(fields.get("options", {}), url=fields.get("connection_url"))
    return options.get("JMSJCA.concurrencymode", "").lower() or fields.get("concurrency_mode")


class ActivationSpec(BaseModel):
    """The configuration of a listener: its destination, and how its messages are delivered (JCA 1.6, section 13.4).

    Attributes:
        destination: The name of the destination, or a `Queue` or a `Topic`.
        destination_type: "queue" or "topic"; a `Queue` or `Topic` as destination implies it.
        connection_url: The URL of the broker; None uses that of the resource adapter.
        user_name: The user name; None uses the user name and password of the resource adapter.
        password: The password of ``user_name``; ignored without one.
        client_id: The client id of the connection; for a durable subscription the default is made from its name.
        options: Options of JMSJCA, which override fields, and of the provider: a mapping, or text as in the manual.
        selector: A message selector; it may contain ``${subscribername}`` and the names of ``selector_variables``.
        selector_variables: The values of ``${name}`` in the selector, also in that of the option ``JMSJCA.selector``. A
            value is inserted as a literal of the selector language, or within quotes as text with its quotes doubled.
        subscription_durability: "Durable" or "NonDurable"; for topics.
        subscription_name: The name of a durable subscription, or ``jmsjca://?distribution=1&subscribername=…``.
        concurrency_mode: "serial": one message after the other, in order; "sync": several receivers; "cc": one
            consumer that feeds several handlers.
        endpoint_pool_max_size: The maximum number of concurrent handlers, in modes "sync" and "cc".
        batch_size: The number of messages in one unit of work, in modes "sync" and "cc"; 0 and 1 disable batches.
        split_failed_batches: True to redeliver the messages of a batch that was rolled back one by one, so that a bad
            message does not hold up the good ones.
        hold_until_ack: True to hold each unit of work until its messages are acknowledged, by the handler or by other
            code; not in mode "serial".
        acknowledgement_timeout: Seconds after which an unacknowledged held unit is rolled back; None means never.
        max_outstanding: The maximum number of open units; the default is 10 times ``endpoint_pool_max_size``.
        redelivery_handling: The actions for redelivered messages, in the syntax of `RedeliveryPolicy.parse`.
        transaction: "local": the receipt and the sends of the handler's session commit together. "required": they
            commit together with the database sessions that the handler joins to its transaction. "bean": the receipt
            alone is a transaction, and the handler's session sends at once. "none": as "bean", and
            ``acknowledge_mode`` counts.
        acknowledge_mode: AUTO or DUPS_OK; used only if ``transaction`` is "none".
        context_name: A name that is logged before and after each call of the handler; None logs nothing.
        mbean_name: The name of the management bean; None registers no bean.

    Raises:
        InvalidActivationSpecError: Fields are invalid; the message lists all of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    # A validator sees only the fields above its own, so their order matters.
    destination: NameText = Field(min_length=1)
    destination_type: DestinationKind = "queue"
    connection_url: URLText | None = Field(default=None, repr=False)  # may hold a password
    user_name: str | None = None
    password: SecretStr | None = None
    client_id: str | None = None
    options: Options = Field(default_factory=dict[str, str], repr=False)  # may hold secrets of the provider
    selector: str | None = None
    selector_variables: SelectorVariables = Field(default_factory=dict[str, Value])
    subscription_durability: Literal["Durable", "NonDurable"] = "NonDurable"
    subscription_name: str | None = Field(default=None, validate_default=True)
    concurrency_mode: ConcurrencyMode = "serial"
    endpoint_pool_max_size: Annotated[int, Number] = Field(default=15, ge=1, le=MAX_INT)
    batch_size: Annotated[int, Number] = Field(default=0, ge=0, le=MAX_INT)
    split_failed_batches: Flag = False
    hold_until_ack: Flag = False
    acknowledgement_timeout: Seconds | None = None
    max_outstanding: Annotated[int, Number] = Field(default_factory=_units_of_all_handlers, ge=1, le=MAX_INT)
    redelivery_handling: RedeliveryHandlingText = DEFAULT_REDELIVERY_HANDLING
    transaction: Literal["local", "required", "bean", "none"] = "local"
    acknowledge_mode: ListenerAcknowledgeMode = AcknowledgeMode.AUTO
    context_name: str | None = None
    mbean_name: str | None = None

    def __init__(self, **fields: Unpack[ActivationSpecFields]) -> None:
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
            properties: For instance ``{"destination": "orders", "destinationType": "javax.jms.Queue"}``. Names
                are not case-sensitive. Properties that JMSJCA checks but does not use are accepted. Values are
                converted with `str`.
            from_descriptor: True for the properties of a deployed descriptor: in mode "serial", batches and held
                acknowledgement are ignored with a warning. (JMSJCA ignores them without one.)

        Raises:
            InvalidActivationSpecError: Properties are invalid or unknown; the message lists all of them.
        """
        fields = fields_from_properties(properties)
        return ActivationSpec(**dict(_DescriptorSpec(**fields))) if from_descriptor else cls(**fields)

    def __hash__(self) -> int:  # pydantic's own fails, because options are a dict
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
        """Return the source of the consumer; for a distributed subscription, that of the topic reader."""
        if self.destination_type == "queue":
            return Queue(self.destination)
        topic = Topic(self.destination)
        return Subscription(topic, self.subscriber_name, self.effective_client_id) if self.durable else topic

    @property
    def effective_client_id(self) -> str | None:
        """The client id of the connection: the configured one, else one made from the durable subscription's name."""
        if self.client_id or not self.durable:
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
        return describe(dict(self), self.options)

    @model_validator(mode="before")
    @classmethod
    def _split_destination(cls, fields: object) -> object:
        given = cast("dict[str, Any]", fields) if isinstance(fields, dict) else {}
        destination = given.get("destination")
        if not isinstance(destination, Destination):
            return fields  # pyright: ignore[reportUnknownVariableType]  # pydantic reports what is no mapping
        return {**given, "destination": destination.name, "destination_type": destination.kind}

    @field_validator("subscription_durability")
    @classmethod
    def _check_durability(cls, durability: str, others: ValidationInfo) -> str:
        if durability == "Durable" and others.data.get("destination_type") == "queue":
            raise ValueError("a queue keeps its messages without a subscription: leave it out, or name a topic")
        return durability

    @field_validator("user_name")
    @classmethod
    def _check_user_name(cls, name: str | None) -> str | None:
        if is_url(name):  # it may hold a password, which a user name does not
            raise ValueError("it is a URL: name the broker in connection_url")
        return name

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
    """A spec from a descriptor: fields that mode "serial" does not support are ignored with a warning."""

    @classmethod
    def _unsupported_in_serial(cls, value: int, others: ValidationInfo) -> int:
        name, destination = others.field_name, others.data.get("destination")
        logger.warning("%s is ignored for %s: mode 'serial' has none; use 'sync' or 'cc'.", name, destination)
        return type(value)()


_SECRET = ("user_name", "password", "connection_url", "options")  # a pair or a URL as user name has a password
_CONSEQUENTIAL = "default_factory_not_called"  # the field that it depends on is invalid, and reported itself


def _destination_conflicts(fields: Mapping[str, object]) -> Iterator[str]:
    """Yield a problem if the type contradicts a destination that is a `Queue` or a `Topic`."""
    destination = fields.get("destination")
    if isinstance(destination, Destination) and fields.get("destination_type", destination.kind) != destination.kind:
        kind = excerpt(fields["destination_type"])
        yield f"destination_type is {kind!r}, but the destination is {excerpt(destination)}"


def _explain(error: ValidationError, known: Collection[str]) -> Iterator[str]:
    """Yield one problem per invalid field, with the field's name.

    Args:
        error: The result of the validation.
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
        options: The options, those of JMSJCA in their canonical spelling.
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
    """Return the effective spec: options are applied to its fields, and the placeholders of its selector replaced.

    The options of the URL override those of the spec, which override those of the adapter. Only one URL is used: that
    of the spec, else that of the adapter. Options override fields.

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
        "connection_url": add_options(url, provider_options(options)) if url else None,
        "selector": _selector(spec, options),
    }
    if inbound.bean_managed and spec.transaction == "required":
        changes["transaction"] = "bean"
    return _with_changes(spec, changes, {name: options[name] for name in _REPLACING if _is_set(options, name)})


def _with_changes(spec: ActivationSpec, changes: Mapping[str, object], replacing: Mapping[str, str]) -> ActivationSpec:
    replaced = {_REPLACING[name]: value for name, value in replacing.items()}
    fields: dict[str, Any] = {**dict(spec), **changes, **replaced}
    try:
        return ActivationSpec(**fields)
    except InvalidActivationSpecError as error:
        problem = str(error)
    # Raised here, without a chain: the message has the whole value.
    for name, value in replacing.items():
        if _has_next_option(value):
            raise InvalidOptionError(
                f"The value of {name} seems to contain the next option: end each option with its line, or begin the"
                " options with JMSJCA.sep= and the character that separates them."
            )
    raise InvalidActivationSpecError(f"With {', '.join(replacing)} from the options in force: {problem}")


def _has_next_option(value: str) -> bool:
    """Return whether the options that follow, one of which may be a password, were not separated from a value."""
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
