"""The options of the "jms" data source: their texts as values, `SourceOptions`, `SinkOptions`, ``credentials``.

Names are not case-sensitive; values are texts. Durations are in seconds, or have units: ``0.5``, ``5 seconds``,
``1 minute 30 seconds``, ``5 min``, ``1 week``.

The option ``credentials``: a text that names where each process that connects finds its user name and password.

Spark keeps options in plans, logs and pickles, so the secret itself is better not among them.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import Any, ClassVar, Self

from jmsjca.arguments import did_you_mean
from jmsjca.config import ConnectionURL
from jmsjca.config.credentials import CredentialSource, check_source
from jmsjca.destinations import Destination, Subscription, Topic, destination
from jmsjca.errors import ConfigurationError, InvalidDestinationError, InvalidOptionError, InvalidSelectorError
from jmsjca.reconnection import ConnectionSettings
from jmsjca.selectors import Selector, build_selector
from jmsjca.spark.schema import COLUMNS, SCHEMA
from jmsjca.spark.staging_location import check_location, open_location, parse_location
from jmsjca.spark.store import Store

__all__ = [
    "ImportedFunction",
    "JmsOptions",
    "SinkOptions",
    "SourceOptions",
    "build_selector_option",
    "check_options",
    "convert_option",
    "parse_credentials",
]

_SPARK_OPTIONS = {"checkpointlocation"}  # passed to every streaming sink
_OF_CATALOG = "provider"  # Spark passes it only when it creates a table in its catalog
_OF_VIEW = {"columns"}  # a view is read, and may be written: its sink ignores what selects columns
_VARIABLE = "selector."
_KINDS = ("queue", "topic")
_GUARANTEES = ("", "at-least-once", "exactly-once")
_SINK_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}\Z")
_MAX_PARTITIONS = 99_999  # five digits in the names of staged files
_DEDUP_KEYS = ("JMSMessageID", "JMSCorrelationID", "content", "none")


@dataclass(frozen=True, slots=True)
class JmsOptions:
    """The options that a source and a sink have in common.

    Attributes:
        url: The URL of the broker. An in-memory broker is refused, because Spark's workers are other processes.
        destination: The name of the queue or topic; also the path of ``.load("orders")`` and ``.save("orders")``.
        destinationType: "queue" or "topic"; a topic is read through a ``subscription``.
        userName: The user name; None uses that of the URL.
        password: The password of ``userName``.
        credentials: "env:NAME", "file:PATH" or "call:MODULE:FUNCTION": read, or called, by each process that connects.
        guarantee: "at-least-once" or "exactly-once". Empty means exactly once for a source, at least once for a sink.
    """

    _role: ClassVar[str] = ""
    _choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"guarantee": _GUARANTEES}

    url: str = field(repr=False)  # may hold a password
    destination: str = ""
    destinationType: str = "queue"
    userName: str | None = None
    password: str | None = field(default=None, repr=False)
    credentials: CredentialSource | None = None
    guarantee: str = ""

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Self:
        """Parse the options of a `DataFrameReader` or a `DataFrameWriter`.

        Raises:
            InvalidOptionError: An option is unknown, missing, has an invalid value, or belongs to the other role.
            InvalidDestinationError: The option ``destinationType`` is neither "queue" nor "topic".
        """
        values = _convert(given)
        wrong = sorted(values.keys() - _names(cls) - _OF_VIEW)
        if wrong:
            other = "source" if cls._role == "sink" else "sink"
            raise InvalidOptionError(
                f"A jms {cls._role} has no option {', '.join(map(repr, wrong))}, which is for a {other}: leave it out."
            )
        options = cls(**{name: value for name, value in values.items() if name in _names(cls)})
        options.check()
        return options

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

    def check(self) -> None:
        """Raise an error for values that cannot be, or do not go together.

        Raises:
            InvalidOptionError: The message names them.
            InvalidDestinationError: The option ``destinationType`` is neither "queue" nor "topic".
        """
        url = ConnectionURL.parse(self.url)
        if url.protocol == "embedded" and not url.path.strip("/"):
            raise InvalidOptionError(f"{url} is memory of one process; Spark needs a file: embedded:///folder/file.db")
        if self.credentials is not None and self.password is not None:
            raise InvalidOptionError("The options 'credentials' and 'password' are both given; use one.")
        if self.destinationType not in _KINDS:
            raise InvalidDestinationError(
                f"The option 'destinationType' must be 'queue' or 'topic', not {self.destinationType!r}."
            )
        for name, known in self._choices.items():
            if getattr(self, name) not in known:
                raise InvalidOptionError(
                    f"The option {name!r} must be {' or '.join(repr(each) for each in known if each)},"
                    f" not {getattr(self, name)!r}."
                )


@dataclass(frozen=True, slots=True)
class SourceOptions(JmsOptions):
    """The options of a table or a stream that is read, beside those of `JmsOptions`.

    An empty ``guarantee`` means exactly once.

    Attributes:
        destinations: The names of several queues that one stream or table reads, separated by commas.
        subscription: The name of a shared durable subscription of the topic; the stream creates it.
        selector: Only messages that match are read. ``${name}`` stands for the value of the option ``selector.name``.
        columns: The columns to read, separated by commas; no others are decoded and staged. Default: all.
        bodyFormat: "json" or "csv": the format of the bodies that ``.schema(…)`` gives columns of. Empty means JSON.
        delimiter: The character between two values of CSV.
        stagingLocation: A folder that driver and executors share, or a bucket, as ``s3://bucket/prefix``; required for
            reading a stream.
        stagingEndpoint: The URL of the service of a bucket; None for the one of the provider.
        stagingRegion: The region of a bucket; None for that of the environment.
        stagingCredentials: ``env:NAME`` or ``file:PATH``, read by each process that uses the bucket; None for the
            credentials that its environment provides.
        stagingName: The name of the query in a staging location that several queries of one queue share.
        sourceChange: "fail" or "allow": the reaction to a checkpoint that belongs to another destination or broker.
        partitions: The number of consumers that share the queue in each batch. A table that is not a stream is browsed
            in one partition unless this is given.
        maxMessagesPerBatch: The maximum number of messages in a batch, over all partitions.
        prefetchEpochs: 1 if the driver stages the next batch while Spark works on the current one, else 0.
        maxBytesPerBatch: The maximum size of the messages in a batch, with headers and properties, whatever columns are
            read, as ``64 MiB``; a partition may exceed its share by one message, and by its first hundred.
        receiveIdleTimeout: A partition ends after this time without a message.
        maxBatchLatency: After this time since its first message, a partition waits for no later messages.
        batchTimeout: A partition ends after this time in any case.
        pollInterval: The interval at which the driver checks an empty queue for new messages.
        driverRetryTimeout: The time for which the driver tolerates an unreachable broker.
        dedupKey: The key that identifies duplicates: "JMSMessageID", "JMSCorrelationID", "property:NAME", "content"
            (messages with equal headers, properties and bodies are one) or "none".
        retainEpochs: The number of committed epochs that remain staged.
        inDoubtRetention: The running time of the query for which the keys of messages are kept whose settlement was
            never confirmed.
        orphans: "fail" or "ignore": the reaction to staged messages of another checkpoint that may be unprocessed.
    """

    _role: ClassVar[str] = "source"
    _choices: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "guarantee": _GUARANTEES,
        "orphans": ("fail", "ignore"),
        "sourceChange": ("fail", "allow"),
        "bodyFormat": ("", "json", "csv"),
    }

    destinations: tuple[str, ...] = ()
    subscription: str | None = None
    selector: str | None = None
    columns: tuple[str, ...] = tuple(SCHEMA.names)
    bodyFormat: str = ""
    delimiter: str = ","
    stagingLocation: str | None = None
    stagingEndpoint: str | None = None
    stagingRegion: str | None = None
    stagingCredentials: str | None = field(default=None, repr=False)
    stagingName: str = ""
    sourceChange: str = "fail"
    partitions: int = 2
    maxMessagesPerBatch: int = 10_000
    prefetchEpochs: int = 0
    maxBytesPerBatch: int = 1 << 28
    receiveIdleTimeout: float = 0.2
    maxBatchLatency: float = 0.5
    batchTimeout: float = 10.0
    pollInterval: float = 0.25
    driverRetryTimeout: float = 300.0
    dedupKey: str = "JMSMessageID"
    retainEpochs: int = 1
    inDoubtRetention: float = 7 * 86400.0
    orphans: str = "fail"

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

    def check(self) -> None:
        """Raise an error for values that cannot be, or do not go together.

        Raises:
            InvalidOptionError: The message names them.
        """
        JmsOptions.check(self)
        self._check_numbers()
        self._check_prefetch()
        self._check_key()
        check_location(self.stagingLocation, **self._of_bucket)
        if self.destinations and (self.destination or self.destinationType != "queue"):
            raise InvalidOptionError(
                "The option 'destinations' names several queues: leave out 'destination' and the path, and read a topic"
                " by a stream of its own."
            )

    def _check_numbers(self) -> None:
        for name in ("partitions", "maxMessagesPerBatch", "maxBytesPerBatch"):
            if getattr(self, name) < 1:
                raise InvalidOptionError(f"The option {name!r} must be at least 1, not {getattr(self, name)}.")
        if self.partitions > _MAX_PARTITIONS:
            raise InvalidOptionError(
                f"The option 'partitions' must be at most {_MAX_PARTITIONS}, not {self.partitions}."
            )
        if not self.batchTimeout:
            raise InvalidOptionError("The option 'batchTimeout' must be greater than 0: a partition reads for so long.")

    def _check_key(self) -> None:
        if self.dedupKey.startswith("property:") and not self.dedupKey.removeprefix("property:").strip():
            raise InvalidOptionError("The option 'dedupKey' names no property: write property:NAME.")
        if self.dedupKey not in _DEDUP_KEYS and not self.dedupKey.startswith("property:"):
            raise InvalidOptionError(
                "The option 'dedupKey' must be JMSMessageID, JMSCorrelationID, property:NAME, content or none, "
                f"not {self.dedupKey!r}."
            )

    def _check_prefetch(self) -> None:
        if self.prefetchEpochs > 1:
            raise InvalidOptionError(f"The option 'prefetchEpochs' must be 0 or 1, not {self.prefetchEpochs}.")
        if self.prefetchEpochs and self.at_least_once:
            raise InvalidOptionError("The option 'prefetchEpochs' needs guarantee=exactly-once: leave out one of both.")


@dataclass(frozen=True, slots=True)
class SinkOptions(JmsOptions):
    """The options of a table or a stream that is written, beside those of `JmsOptions`.

    An empty ``guarantee`` means at least once.

    Attributes:
        timeToLive: The time to live of written messages; 0 means unlimited.
        queryName: The name of a sink, which is also that of Spark's query; of a table within ``foreachBatch``.
        batchId: The number of the batch that a table is; None for that of the streaming query.
    """

    _role: ClassVar[str] = "sink"

    timeToLive: float = 0.0
    queryName: str = ""
    batchId: int | None = None

    @property
    def exactly_once(self) -> bool:
        """True with ``guarantee=exactly-once``: see `jmsjca.spark.exactly_once`."""
        return self.guarantee == "exactly-once"

    def check_batches(self, *, streaming: bool) -> None:
        """Raise an error for options of a sink that do not go together.

        Args:
            streaming: True for the sink of a streaming query, False for that of a table.

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
    _convert(given)


def _convert(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of options by their names."""
    given = {name.lower(): text for name, text in given.items()}
    if _OF_CATALOG in given:
        raise InvalidOptionError(
            "A table of Spark's catalog would lose these OPTIONS: Spark does not pass them to a data source in"
            " Python when the table is used. Make a temporary view, CREATE TEMPORARY VIEW … USING jms OPTIONS (…);"
            " or name the columns, CREATE TABLE … (text STRING) USING jms, and give the options in each statement,"
            " INSERT INTO … WITH (url = '…', …)."
        )
    known = {name.lower(): name for name in (*_names(SourceOptions), *_names(SinkOptions))}
    values: dict[str, Any] = {}
    for name, text in _with_path(given).items():
        if name in known:
            values[known[name]] = convert_option(known[name], text)
        elif name not in _SPARK_OPTIONS and not name.startswith(_VARIABLE):
            raise InvalidOptionError(f"The jms data source has no option {name!r} {did_you_mean(name, known)}.")
    if not values.get("url"):
        raise InvalidOptionError(
            "The option 'url' is missing: .option(\"url\", …); or, for a table of Spark's catalog, WITH (url = '…',"
            " …) in each statement, because Spark does not pass the OPTIONS of such a table."
        )
    if values.get("selector"):
        variables = {name.removeprefix(_VARIABLE): v for name, v in given.items() if name.startswith(_VARIABLE)}
        values["selector"] = build_selector_option(values["selector"], variables)
    return values


def _names(role: type[JmsOptions]) -> list[str]:
    return [option.name for option in fields(role)]


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


_CALL = "call:"


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


def parse_credentials(text: str) -> CredentialSource:
    """Return the source of credentials that an option names.

    Raises:
        InvalidOptionError: The text has none of the forms. The message does not contain it.
    """
    if text.startswith(_CALL):
        module, _, function = text.removeprefix(_CALL).partition(":")
        if module and function.isidentifier():
            return ImportedFunction(module, function)
    try:
        check_source(text)
    except ConfigurationError:
        pass  # raised below
    else:
        return text
    raise InvalidOptionError(
        "The option 'credentials' must be env:NAME, file:PATH or call:MODULE:FUNCTION. It does not take the password"
        " itself."
    )


_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?\Z")
_SECONDS = {"millisecond": 0.001, "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0}
_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0} | {
    name + plural: seconds for name, seconds in _SECONDS.items() for plural in ("", "s")
}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)
_SIZES = {"": 0, "b": 0, **{f"{letter}{rest}": n for n, letter in enumerate("kmgt", 1) for rest in ("", "b", "ib")}}
_SIZE = re.compile(r"(\d+)\s*([a-z]*)", re.IGNORECASE)


def convert_option(name: str, text: str) -> Any:
    """Return the value of an option.

    Args:
        name: Its name, in the case of the documentation.
        text: Its text.

    Raises:
        InvalidOptionError: The text is no such value.
    """
    convert = _CONVERTERS.get(name, str)
    try:
        return convert(text)
    except ConfigurationError:
        raise
    except ValueError as error:
        wanted = _WANTED.get(convert, "a number that is not negative")
        raise InvalidOptionError(f"The option {name!r} must be {wanted}, not {text!r}.") from error


def build_selector_option(template: str, given: Mapping[str, str]) -> str:
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


def _parse_names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise InvalidOptionError(f"The option 'destinations' must name different queues, not {text!r}.")
    return names


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
        raise InvalidOptionError(f"The option 'delimiter' must be one character, not {text!r}.")
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


_WANTED: dict[Callable[[str], Any], str] = {
    _parse_duration: (
        "a time that is not negative, in seconds or with a unit: ms, s, min, h, d, or millisecond, second, minute,"
        " hour, day, week, as '5 seconds' or '1 minute 30 seconds'"
    ),
    _parse_size: "a whole number of bytes, or of B, KB, MB, GB or TB, each 1024 times the one before, as '64 MiB'",
}
_CONVERTERS: dict[str, Callable[[str], Any]] = {
    "credentials": parse_credentials,
    "columns": _parse_columns,
    "delimiter": _parse_delimiter,
    "destinations": _parse_names,
    "maxBytesPerBatch": _parse_size,
    "stagingLocation": parse_location,
    "partitions": _parse_count,
    "maxMessagesPerBatch": _parse_count,
    "prefetchEpochs": _parse_count,
    "retainEpochs": _parse_count,
    "receiveIdleTimeout": _parse_duration,
    "maxBatchLatency": _parse_duration,
    "batchTimeout": _parse_duration,
    "pollInterval": _parse_duration,
    "driverRetryTimeout": _parse_duration,
    "inDoubtRetention": _parse_duration,
    "timeToLive": _parse_duration,
    "batchId": _parse_count,
}
