"""The options of the "jms" data source."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from jmsjca.config import ConnectionURL
from jmsjca.config.text import did_you_mean
from jmsjca.destinations import Destination, destination
from jmsjca.errors import ConfigurationError, InvalidOptionError
from jmsjca.reconnection import ConnectionSettings

__all__ = ["SparkOptions"]

_SPARK_OPTIONS = {"checkpointlocation"}  # handed to every streaming sink


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Options as Spark hands them over: names without regard to case, values as text; times in seconds.

    Attributes:
        url: The broker. A memory broker is refused: Spark's workers are other processes.
        destination: The name of the queue or topic.
        destinationType: "queue" or "topic"; only a queue can be read.
        userName: Who connects; None for the user name in the URL.
        password: The password of ``userName``.
        stagingLocation: A folder that driver and executors share; needed to read a stream.
        partitions: How many consumers share the queue in each batch.
        maxMessagesPerBatch: How many messages a batch takes at most, over all partitions.
        receiveIdleTimeout: A partition is complete when no message came for so long.
        batchTimeout: A partition is complete after so long.
        pollInterval: How often the driver looks for new messages.
        driverRetryTimeout: How long the driver puts up with a broker that cannot be reached.
        dedupKey: What recognises a message sent twice: "JMSMessageID", "JMSCorrelationID", "property:NAME", "none".
        retainEpochs: How many committed epochs stay staged.
        inDoubtRetention: How long the keys of messages are kept whose settlement was never confirmed.
        orphans: "fail" or "ignore" staged messages of another checkpoint that were perhaps never processed.
        timeToLive: Of messages written; 0 for no end.
    """

    url: str = field(repr=False)  # may hold a password
    destination: str
    destinationType: str = "queue"
    userName: str | None = None
    password: str | None = field(default=None, repr=False)
    stagingLocation: str | None = None
    partitions: int = 2
    maxMessagesPerBatch: int = 10_000
    receiveIdleTimeout: float = 0.2
    batchTimeout: float = 10.0
    pollInterval: float = 0.25
    driverRetryTimeout: float = 300.0
    dedupKey: str = "JMSMessageID"
    retainEpochs: int = 1
    inDoubtRetention: float = 7 * 86400.0
    orphans: str = "fail"
    timeToLive: float = 0.0

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Self:
        """Read the options of a `DataFrameReader` or a `DataFrameWriter`.

        Raises:
            InvalidOptionError: One is unknown, missing, or has a value that cannot be used.
        """
        known = {option.name.lower(): option for option in fields(cls)}
        values: dict[str, Any] = {}
        for name, text in given.items():
            if name.lower() in _SPARK_OPTIONS:
                continue
            option = known.get(name.lower())
            if option is None:
                raise InvalidOptionError(_unknown_option_message(name, [o.name for o in known.values()]))
            values[option.name] = _convert(option.name, text, _CONVERTERS.get(option.name, str))
        for name in ("url", "destination"):
            if not values.get(name):
                raise InvalidOptionError(f'The option {name!r} is missing: .option("{name}", …)')
        options = cls(**values)
        options._check()
        return options

    @property
    def target(self) -> Destination:
        """The destination with its kind."""
        return destination(self.destination, self.destinationType)

    @property
    def settings(self) -> ConnectionSettings:
        """What connections are made from."""
        return ConnectionSettings(self.url, self.userName, self.password)

    def staging(self) -> Path:
        """The folder for staged messages.

        Raises:
            InvalidOptionError: None was given.
        """
        if self.stagingLocation is None:
            raise InvalidOptionError(
                "Reading a stream takes messages off the queue and needs a folder to keep them replayable: "
                '.option("stagingLocation", …), beside the checkpoint and shared by driver and executors.'
            )
        return Path(self.stagingLocation)

    def _check(self) -> None:
        url = ConnectionURL.parse(self.url)
        if url.protocol == "embedded" and not url.path.strip("/"):
            raise InvalidOptionError(f"{url} is memory of one process; Spark needs a file: embedded:///folder/file.db")
        _ = self.target
        for name in ("partitions", "maxMessagesPerBatch"):
            if getattr(self, name) < 1:
                raise InvalidOptionError(f"The option {name!r} must be at least 1, not {getattr(self, name)}.")
        if self.orphans not in ("fail", "ignore"):
            raise InvalidOptionError(f"The option 'orphans' must be 'fail' or 'ignore', not {self.orphans!r}.")
        if self.dedupKey not in ("JMSMessageID", "JMSCorrelationID", "none") and not self.dedupKey.startswith(
            "property:"
        ):
            raise InvalidOptionError(
                "The option 'dedupKey' must be JMSMessageID, JMSCorrelationID, property:NAME or none, "
                f"not {self.dedupKey!r}."
            )


def _parse_count(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(text)
    return int(text)


def _parse_duration(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError(text)
    return value


def _parse_folder(text: str) -> str:
    """A path, or a ``file:`` URL as Spark writes it. Made absolute here, on the driver."""
    path = re.sub("^file:(//(?=/))?(?=/(?!/))", "", text)
    if re.match("[A-Za-z][A-Za-z0-9+.-]+:", path):
        raise InvalidOptionError(
            f"The option 'stagingLocation' must be a folder that driver and executors share, not {text!r}."
        )
    return str(Path(path).absolute())


_CONVERTERS: dict[str, Callable[[str], Any]] = {
    "stagingLocation": _parse_folder,
    "partitions": _parse_count,
    "maxMessagesPerBatch": _parse_count,
    "retainEpochs": _parse_count,
    "receiveIdleTimeout": _parse_duration,
    "batchTimeout": _parse_duration,
    "pollInterval": _parse_duration,
    "driverRetryTimeout": _parse_duration,
    "inDoubtRetention": _parse_duration,
    "timeToLive": _parse_duration,
}


def _convert(name: str, text: str, convert: Callable[[str], Any]) -> Any:
    try:
        return convert(text)
    except ConfigurationError:
        raise
    except ValueError as error:
        raise InvalidOptionError(f"The option {name!r} must be a number that is not negative, not {text!r}.") from error


def _unknown_option_message(name: str, known: list[str]) -> str:
    return f"The jms data source has no option {name!r} {did_you_mean(name.lower(), {k.lower(): k for k in known})}."
