"""The options of the "jms" data source: their texts as values, `SourceOptions`, `SinkOptions`, ``credentials``.

Names are not case-sensitive; values are texts. Durations are in seconds, or have units: ``0.5``, ``5 seconds``,
``1 minute 30 seconds``, ``5 min``, ``1 week``.

The option ``credentials``: a text that names where each process that connects finds its user name and password.

Spark keeps options in plans, logs and pickles, so the secret itself is better not among them.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from importlib import import_module
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from jmsjca.arguments import did_you_mean
from jmsjca.config import ConnectionURL
from jmsjca.config.connection_url import CREDENTIALS, CredentialSource, absolute_url
from jmsjca.destinations import Destination, Queue, Subscription, Topic, destination, named_destination
from jmsjca.errors import (
    ConfigurationError,
    InvalidDestinationError,
    InvalidOptionError,
    InvalidSelectorError,
    JMSError,
)
from jmsjca.reconnection import ConnectionSettings
from jmsjca.selectors import Selector, build_selector
from jmsjca.spark.schema import COLUMNS, SCHEMA
from jmsjca.spark.staging_location import check_location, open_location, parse_location
from jmsjca.spark.store import Store

__all__ = ["ImportedFunction", "JmsOptions", "SinkOptions", "SourceOptions", "check_options"]

_SPARK_OPTIONS = {"checkpointlocation"}  # passed to every streaming sink
_OF_CATALOG = "provider"  # Spark passes it only when it creates a table in its catalog
_OF_VIEW = {"columns"}  # a view is read, and may be written: its sink ignores what selects columns
_VARIABLE = "selector."
_QUEUE, _TOPIC = "destination, as 'orders'", "destination, as 'topic:news'"
_COLUMN = "a column of that name, as it is a value of each message"
_MEANT = {  # what newcomers write, in lower case without "_", and its remedy
    **dict.fromkeys(("queue", "queuename"), _QUEUE),
    **dict.fromkeys(("topic", "topicname"), _TOPIC),
    **dict.fromkeys(("queues", "topics"), "destinations, as 'orders,returns', which are queues"),
    **dict.fromkeys(("broker", "brokerurl", "connectionurl", "host", "hosts", "port"), "url, as 'amqp://HOST:5672'"),
    **dict.fromkeys(("staging", "checkpoint"), "stagingLocation, beside Spark's checkpointLocation"),
    **dict.fromkeys(("durable", "clientid", "subscriptionname"), "subscription, which is durable and shared"),
    "ttl": "timeToLive",
    **dict.fromkeys(("priority", "deliverymode", "deliverydelay", "correlationid", "replyto", "properties"), _COLUMN),
}
_SINK_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}\Z")
_MAX_PARTITIONS = 99_999  # five digits in the names of staged files
_DEDUP_KEYS = ("JMSMessageID", "JMSCorrelationID", "content", "none")
_CALL = "call:"
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?\Z")
_SECONDS = {"millisecond": 0.001, "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0}
_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0} | {
    name + plural: seconds for name, seconds in _SECONDS.items() for plural in ("", "s")
}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)
_SIZES = {"": 0, "b": 0, **{f"{letter}{rest}": n for n, letter in enumerate("kmgt", 1) for rest in ("", "b", "ib")}}
_SIZE = re.compile(r"(\d+)\s*([a-z]*)", re.IGNORECASE)
_RANGES = {
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "greater_than": "greater than {gt:g}",
}


@dataclass(frozen=True, slots=True)
class ImportedFunction:
    """A function that returns user name and password, imported by the process that connects.

    Args:
        module: The module, which must be installed on the driver and on every executor.
        function: The name of the function in it.
    """

    module: str
    function: str

    @property
    def __name__(self) -> str:
        """The name for error messages."""
        return f"{self.module}:{self.function}"

    def __call__(self) -> tuple[str, str | None]:
        """Return the user name and the password.

        Raises:
            InvalidOptionError: There is no such module or function.
        """
        try:
            function = getattr(import_module(self.module), self.function)
        except (ImportError, AttributeError) as error:
            raise InvalidOptionError(
                f"The option 'credentials' names the function {self.function} of the module {self.module}, which cannot"
                f" be imported here: {error}. Install the module on the driver and on every executor."
            ) from error
        user, password = function()
        return user, password


def _parse_credentials(text: str) -> CredentialSource:
    """Return the source of credentials that an option names.

    Raises:
        InvalidOptionError: The text has none of the forms. The message does not contain it.
    """
    if text.startswith(_CALL):
        module, _, function = text.removeprefix(_CALL).partition(":")
        if module and function.isidentifier():
            return ImportedFunction(module, function)
    try:
        CREDENTIALS("credentials", text)
    except ConfigurationError:
        raise InvalidOptionError(
            "The option 'credentials' must be env:NAME, file:PATH or call:MODULE:FUNCTION. It does not take the"
            " password itself."
        ) from None
    return text


def _parse_url(text: str) -> str:
    url = ConnectionURL.parse(text) if text else None  # `_named` reports the empty one
    if url and url.protocol == "embedded" and not url.path.strip("/"):
        raise InvalidOptionError(f"{url} is memory of one process; Spark needs a file: embedded:///folder/file.db")
    return absolute_url(text)


def _parse_key(text: str) -> str:
    if text.startswith("property:") and not text.removeprefix("property:").strip():
        raise InvalidOptionError("The option 'dedupKey' names no property: write property:NAME.")
    if text not in _DEDUP_KEYS and not text.startswith("property:"):
        raise ValueError(text)
    return text


def _parse_names(text: str) -> tuple[str, ...]:
    names = [name.strip() for name in text.split(",")]
    try:
        queues = [named_destination(name) for name in names]
    except InvalidDestinationError:
        queues = []
    if len(set(queues)) < len(names) or not all(isinstance(each, Queue) for each in queues):
        raise InvalidOptionError(
            f"The option 'destinations' must name different queues, not {text!r}. Read a topic by a stream of its own."
        )
    return tuple(each.name for each in queues)


def _parse_columns(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    known = {column: column for column in COLUMNS}
    for name in names:
        if name not in known:
            raise InvalidOptionError(f"There is no column {name!r} {did_you_mean(name.lower(), known)}.")
    if len(set(names)) < len(names):
        raise InvalidOptionError(f"The option 'columns' names a column twice: {text!r}.")
    return names


def _parse_delimiter(text: str) -> str:
    if len(text) != 1 or text in '"\r\n':
        raise ValueError(text)
    return text


def _parse_size(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None or match[2].lower() not in _SIZES:
        raise ValueError(text)
    return int(match[1]) << 10 * _SIZES[match[2].lower()]


def _parse_duration(text: str) -> float:
    value = _sum_of_units(text) if re.search("[a-z]\\s*$", text, re.IGNORECASE) else float(text)
    if not 0 <= value < float("inf"):
        raise ValueError(text)
    return value


def _sum_of_units(text: str) -> float:
    if re.sub(_AMOUNT, "", text):
        raise ValueError(text)
    try:
        return sum(float(amount) * _UNITS[unit.lower()] for amount, unit in _AMOUNT.findall(text))
    except KeyError as error:
        raise ValueError(text) from error


def _parse_count(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(text)
    return int(text)


def _from_text(parse: Callable[[str], object], wanted: str = "a number that is not negative") -> BeforeValidator:
    """Return a validator that converts text.

    Args:
        parse: Converts the text; raises a ValueError, or an error with its own message.
        wanted: The accepted texts, for the error message.
    """

    def convert(value: object) -> object:
        try:
            return parse(value) if isinstance(value, str) else value
        except JMSError:
            raise
        except ValueError:
            raise ValueError(wanted) from None

    return BeforeValidator(convert)


_Count = Annotated[int, _from_text(_parse_count)]
_Duration = Annotated[
    float,
    _from_text(
        _parse_duration,
        "a time that is not negative, in seconds or with a unit: ms, s, min, h, d, or millisecond, second, minute,"
        " hour, day, week, as '5 seconds' or '1 minute 30 seconds'",
    ),
]
_Size = Annotated[
    int,
    _from_text(
        _parse_size, "a whole number of bytes, or of B, KB, MB, GB or TB, each 1024 times the one before, as '64 MiB'"
    ),
]
_Key = Annotated[str, _from_text(_parse_key, "JMSMessageID, JMSCorrelationID, property:NAME, content or none")]

_CONFIG = ConfigDict(use_attribute_docstrings=True)


R = TypeVar("R", bound="JmsOptions")


@dataclass(frozen=True, slots=True, config=_CONFIG)
class JmsOptions:
    """The options that a source and a sink have in common."""

    _role: ClassVar[str] = ""

    url: Annotated[str, AfterValidator(_parse_url)] = field(repr=False)  # may hold a password
    """The URL of the broker. An in-memory broker is refused, because Spark's workers are other processes."""
    destination: str = ""
    """The name of the queue or topic; also the path of ``.load("orders")`` and ``.save("orders")``. Without a
    ``destinationType``, ``topic:news`` names a topic, and ``queue:topic:news`` the queue ``topic:news``."""
    destinationType: Literal["queue", "topic"] = "queue"
    """``queue`` or ``topic``; a topic is read through a ``subscription``."""
    userName: str | None = None
    """The user name, which is better given here than in the URL; the default is the user name of the URL."""
    password: str | None = field(default=None, repr=False)
    """The password of ``userName``."""
    credentials: Annotated[CredentialSource | None, _from_text(_parse_credentials)] = None
    """``env:NAME``, ``file:PATH`` or ``call:MODULE:FUNCTION``: read, or called, by each process that connects."""
    guarantee: Literal["", "at-least-once", "exactly-once"] = ""
    """``at-least-once`` or ``exactly-once``; by default exactly once for a source, at least once for a sink."""

    @model_validator(mode="after")
    def _exclude(self) -> Self:
        """Refuse options that do not go together."""
        if self.credentials is not None and self.password is not None:
            raise InvalidOptionError("The options 'credentials' and 'password' are both given; use one.")
        if self.password is not None and self.userName is None:
            raise InvalidOptionError("The option 'password' has no effect without the option 'userName': set both.")
        return self

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Self:
        """Parse the options of a `DataFrameReader` or a `DataFrameWriter`.

        Raises:
            InvalidOptionError: An option is unknown, missing, has an invalid value, or belongs to the other role.
            InvalidDestinationError: The option ``destinationType`` is neither "queue" nor "topic".
        """
        texts = _named(given)
        if wrong := sorted(texts.keys() - _names(cls) - _OF_VIEW):
            other = "source" if cls._role == "sink" else "sink"
            raise InvalidOptionError(
                f"A jms {cls._role} has no option {', '.join(map(repr, wrong))}, which is for a {other}: leave it out."
            )
        return _build(cls, texts)

    @property
    def target(self) -> Destination:
        """The destination with its kind.

        Raises:
            InvalidOptionError: The option ``destination`` is missing.
        """
        if not self.destination:
            raise InvalidOptionError("The option 'destination' is missing: .option(\"destination\", …) or a path.")
        return destination(self.destination, self.destinationType)

    @property
    def settings(self) -> ConnectionSettings:
        """The settings for connections."""
        return ConnectionSettings(self.url, self.userName, self.password, source=self.credentials)


@dataclass(frozen=True, slots=True, config=_CONFIG)
class SourceOptions(JmsOptions):
    """The options of a table or a stream that is read, in addition to the fields of `JmsOptions`."""

    _role: ClassVar[str] = "source"

    destinations: Annotated[tuple[str, ...], _from_text(_parse_names)] = ()
    """Several queues that one stream or table reads, as ``orders,returns``, instead of ``destination``. A name may have
    the prefix ``queue:``: ``queue:topic:news`` is the queue ``topic:news``."""
    subscription: str | None = None
    """The name of a shared durable subscription of the topic; the stream creates it."""
    selector: str | None = None
    """Only messages that match are read; ``${name}`` stands for the value of the option ``selector.name``."""
    columns: Annotated[tuple[str, ...], _from_text(_parse_columns)] = tuple(SCHEMA.names)
    """The columns to read, as ``text,properties``; no others are decoded and staged. A sink ignores it."""
    bodyFormat: Literal["", "json", "csv"] = ""
    """``json`` or ``csv``: the format of the bodies, for the columns that ``.schema(…)`` adds; by default JSON."""
    delimiter: Annotated[str, _from_text(_parse_delimiter, "one character")] = ","
    """The character between two values of CSV."""
    stagingLocation: Annotated[str | None, _from_text(parse_location)] = None
    """A folder that driver and executors share, or a bucket, as ``s3://bucket/prefix``; required to read a stream."""
    stagingEndpoint: str | None = None
    """The URL of the service of a bucket; the default is the provider's URL."""
    stagingRegion: str | None = None
    """The region of a bucket; the default comes from the environment."""
    stagingCredentials: str | None = field(default=None, repr=False)
    """``env:NAME`` or ``file:PATH``, read by each process that uses a bucket; its environment is the default."""
    stagingName: str = ""
    """The name of the query, if several queries of one queue share a staging location."""
    sourceChange: Literal["fail", "allow"] = "fail"
    """``fail`` or ``allow``: the reaction to a checkpoint that belongs to another destination or broker."""
    partitions: Annotated[_Count, Field(ge=1, le=_MAX_PARTITIONS)] = 2
    """The number of consumers of each batch. Without this option, a table browses each queue in one partition."""
    maxMessagesPerBatch: Annotated[_Count, Field(ge=1)] = 10_000
    """The maximum number of messages of a batch, over all partitions."""
    prefetchEpochs: Annotated[Literal[0, 1], _from_text(_parse_count)] = 0
    """1 if the driver stages the next batch while Spark works on the current one, else 0."""
    maxBytesPerBatch: Annotated[_Size, Field(ge=1)] = 1 << 28
    """The maximum size of the messages of a batch, as ``64 MiB``, over all partitions. Headers and properties count,
    also in columns that are not read. A partition may exceed its share by one message, and in any case receives up to
    100 messages. A large partition needs at most twice the memory of its share."""
    receiveIdleTimeout: _Duration = 0.2
    """A partition ends after this time without a message."""
    maxBatchLatency: _Duration = 0.5
    """The longest time that the first message of a partition waits for later ones."""
    batchTimeout: Annotated[_Duration, Field(gt=0)] = 10.0
    """A partition ends after this time in any case."""
    pollInterval: _Duration = 0.25
    """How often the driver looks for messages while the queue is empty; after a batch it looks at once."""
    driverRetryTimeout: _Duration = 300.0
    """The time for which the driver tolerates an unreachable broker."""
    dedupKey: _Key = "JMSMessageID"
    """The key that identifies duplicates: ``JMSMessageID``, ``JMSCorrelationID``, ``property:NAME``, ``content``
    (messages with equal headers, properties and bodies are one) or ``none``."""
    retainEpochs: _Count = 1
    """The number of committed epochs that remain staged."""
    inDoubtRetention: _Duration = 7 * 86400.0
    """The time for which a running query keeps the keys of messages without a confirmed settlement, at most 200,000."""
    orphans: Literal["fail", "ignore"] = "fail"
    """``fail`` or ``ignore``: the reaction to staged messages of another checkpoint that may be unprocessed."""

    @model_validator(mode="after")
    def _fit(self) -> Self:
        """Refuse options that do not go together."""
        if self.prefetchEpochs and self.at_least_once:
            raise InvalidOptionError("The option 'prefetchEpochs' needs guarantee=exactly-once: leave out one of both.")
        check_location(self.stagingLocation, **self._of_bucket)
        if self.destinations and (self.destination or self.destinationType != "queue"):
            raise InvalidOptionError(
                "The option 'destinations' names several queues: leave out 'destination' and the path, and read a topic"
                " by a stream of its own."
            )
        return self

    @property
    def sources(self) -> dict[str, Destination | Subscription]:
        """The queues that a stream reads, by name; the only queue or subscription under the empty name.

        Raises:
            InvalidOptionError: The destination is missing, or a topic has no subscription, or a queue has one.
        """
        if self.destinations:
            return {name: destination(name, "queue") for name in self.destinations}
        return {"": self._source(self.target)}

    @property
    def at_least_once(self) -> bool:
        """True for a source with ``guarantee=at-least-once``: see `jmsjca.spark.staging`."""
        return self.guarantee == "at-least-once"

    @property
    def described(self) -> str:
        """The destinations and the broker, without credentials and options."""
        url = ConnectionURL.parse(self.url)
        hosts = ",".join(map(str, url.addresses))
        return f"{', '.join(map(str, self.sources.values()))} at {url.protocol}://{hosts}{url.path}"

    def staging(self) -> Store:
        """Return the store for staged messages.

        Raises:
            InvalidOptionError: The option ``stagingLocation`` is missing.
        """
        if self.stagingLocation is None:
            raise InvalidOptionError(
                "Reading a stream takes messages off the queue and needs a folder to keep them replayable: "
                '.option("stagingLocation", …), beside the checkpoint and shared by driver and executors.'
            )
        return open_location(self.stagingLocation, **self._of_bucket)

    @property
    def _of_bucket(self) -> dict[str, str | None]:
        return {
            "endpoint": self.stagingEndpoint,
            "region": self.stagingRegion,
            "credentials": self.stagingCredentials,
        }

    def _source(self, target: Destination) -> Destination | Subscription:
        if isinstance(target, Topic) != bool(self.subscription):
            raise InvalidOptionError(
                f'A stream reads a topic through a subscription: {target} needs .option("subscription", …).'
                if isinstance(target, Topic)
                else f"The option 'subscription' is for topics, and {target} is none: set destinationType to topic."
            )
        return Subscription(target, self.subscription, shared=True) if isinstance(target, Topic) else target


@dataclass(frozen=True, slots=True, config=_CONFIG)
class SinkOptions(JmsOptions):
    """The options of a table or a stream that is written, in addition to the fields of `JmsOptions`."""

    _role: ClassVar[str] = "sink"

    timeToLive: _Duration = 0.0
    """The time to live of written messages; 0 means unlimited."""
    queryName: str = ""
    """The name of a sink, which is also the name of Spark's query; within ``foreachBatch`` the name of the table."""
    batchId: _Count | None = None
    """The number of the batch that is written as a table; the default is the number of the streaming query's batch."""

    @property
    def exactly_once(self) -> bool:
        """True with ``guarantee=exactly-once``: see `jmsjca.spark.exactly_once`."""
        return self.guarantee == "exactly-once"

    def check_batches(self, *, streaming: bool) -> None:
        """Raise an error for options of a sink that do not go together.

        Args:
            streaming: True for the sink of a streaming query, False for a batch write of a table.

        Raises:
            InvalidOptionError: ``batchId`` or ``queryName`` is missing, invalid, or has no effect.
        """
        if streaming and self.batchId is not None:
            raise InvalidOptionError("Spark numbers the batches of a streaming query: leave out the option 'batchId'.")
        if self.batchId is not None and not self.queryName:
            raise InvalidOptionError(
                "The option 'batchId' has no effect without 'queryName': a table is recognised by its name and number."
            )
        if not self.exactly_once:
            return
        if not self.queryName:
            raise InvalidOptionError(
                "guarantee=exactly-once needs a name, under which the broker keeps the number of the last batch: "
                + ('.queryName("…").' if streaming else "set the option 'queryName'.")
            )
        if not _SINK_NAME.match(self.queryName):
            raise InvalidOptionError(
                f"The queryName {self.queryName!r:.200} cannot be part of the name of a queue, but"
                " guarantee=exactly-once needs that: use at most 100 letters A to Z, digits, '.', '-' and '_'."
            )


def check_options(given: Mapping[str, str]) -> None:
    """Raise an error for options that neither a source nor a sink has, and for values that cannot be read.

    Raises:
        InvalidOptionError: An option is unknown, missing, or has an invalid value.
    """
    texts = _named(given)
    for role in (SourceOptions, SinkOptions):
        _build(role, texts)


def _named(given: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of options by their names, with the selector complete."""
    given = {name.lower(): text for name, text in given.items()}
    if _OF_CATALOG in given:
        raise InvalidOptionError(
            "A table of Spark's catalog would lose these OPTIONS: Spark does not pass them to a data source in"
            " Python when the table is used. Make a temporary view, CREATE TEMPORARY VIEW … USING jms OPTIONS (…);"
            " or name the columns, CREATE TABLE … (text STRING) USING jms, and give the options in each statement,"
            " INSERT INTO … WITH (url = '…', …)."
        )
    known = {name.lower(): name for name in (*_names(SourceOptions), *_names(SinkOptions))}
    texts: dict[str, str] = {}
    for name, text in _with_path(given).items():
        if name in known:
            texts[known[name]] = text
        elif name not in _SPARK_OPTIONS and not name.startswith(_VARIABLE):
            meant = _MEANT.get(name.replace("_", ""))
            hint = f"(use {meant})" if meant else did_you_mean(name, known)
            raise InvalidOptionError(f"The jms data source has no option {name!r} {hint}.")
    if not texts.get("url"):
        raise InvalidOptionError(
            "The option 'url' is missing: .option(\"url\", …); or, for a table of Spark's catalog, WITH (url = '…',"
            " …) in each statement, because Spark does not pass the OPTIONS of such a table."
        )
    if "destinationType" not in texts and texts.get("destination", "").startswith(("queue:", "topic:")):
        texts["destinationType"], _, texts["destination"] = texts["destination"].partition(":")
    if texts.get("selector"):
        variables = {name.removeprefix(_VARIABLE): v for name, v in given.items() if name.startswith(_VARIABLE)}
        texts["selector"] = _build_selector(texts["selector"], variables)
    return texts


def _names(role: type[JmsOptions]) -> list[str]:
    return [option.name for option in fields(role)]


def _build(role: type[R], texts: Mapping[str, Any]) -> R:
    """Return the options of a role among the texts by name."""
    try:
        return role(**{name: text for name, text in texts.items() if name in _names(role)})
    except ValidationError as error:
        problem = _explain(error)
    raise problem  # outside the handler: the context would have the value, which may be a secret


def _explain(error: ValidationError) -> JMSError:
    """Return the error for the first problem: the option, the accepted values, and the value."""
    problem = error.errors(include_url=False)[0]
    context = problem.get("ctx", {})
    cause = context.get("error")
    if isinstance(cause, JMSError):
        return cause
    name, text = problem["loc"][0], problem["input"]
    kind = InvalidDestinationError if name == "destinationType" else InvalidOptionError
    if problem["type"] in _RANGES:
        return kind(f"The option {name!r} must be {_RANGES[problem['type']].format(**context)}, not {text}.")
    wanted = context["expected"].removeprefix("'', ") if cause is None else cause
    return kind(f"The option {name!r} must be {wanted}, not {text!r}.")


def _with_path(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options with the path of ``.load("orders")`` as destination."""
    options = dict(given)
    if "paths" in options:
        raise InvalidOptionError(
            f"The option 'destinations' names several queues: leave out the paths {options['paths']}, and set"
            ' .option("destinations", "orders,returns").'
        )
    path = options.pop("path", None)
    if path is not None and options.setdefault("destination", path) != path:
        raise InvalidOptionError(
            f"The path {path!r} and the option 'destination', {options['destination']!r}, are both given; use one."
        )
    return options


def _build_selector(template: str, given: Mapping[str, str]) -> str:
    """Return a selector with its placeholders replaced.

    Args:
        template: The selector. Spark does not keep the case of an option's name, so it does not matter in placeholders.
        given: The values of the placeholders, by their names in lower case.

    Raises:
        InvalidOptionError: A value is missing, or the selector is invalid.
    """
    lowered = re.sub(r"\$\{[^}]*\}", lambda match: match[0].lower(), template)
    variables = {name: _value(text) for name, text in given.items()}
    try:
        selector = build_selector(lowered, variables)
        if missing := re.findall(r"\$\{([^}]*)\}", selector):
            raise InvalidOptionError(f"The selector has no value for {', '.join(missing)}: set selector.{missing[0]}.")
        Selector.parse(selector)
    except InvalidSelectorError as error:
        raise InvalidOptionError(f"The option 'selector' is invalid: {error}") from error
    return selector


def _value(text: str) -> str | int | float:
    if not _NUMBER.match(text):
        return text
    return float(text) if "." in text else int(text)
