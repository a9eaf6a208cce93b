"""A connector on Spark: the events of a configuration as micro-batches, one typed table per type of business object."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from importlib import import_module
from typing import Any, TypeAlias

from jmsjca.config.naming import LOOKUP
from jmsjca.connector.collaborations import Collaboration
from jmsjca.connector.config import ConnectorConfig
from jmsjca.connector.data_handlers import DataHandler
from jmsjca.connector.event_conversion import default_data_handler
from jmsjca.connector.event_rows import ORIGIN, EventRows, Subscription
from jmsjca.connector.object_columns import ObjectColumns, pa
from jmsjca.connector.return_codes import DeliveryOutcome
from jmsjca.destinations import Destination, Topic
from jmsjca.errors import ConfigurationError, ProviderNotInstalledError
from jmsjca.log_records import get_logger

try:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    f: Any = import_module("pyspark.sql.functions")  # its stubs lack the functions of Arrow
except ImportError as error:
    raise ProviderNotInstalledError(f'An EventPipeline needs {error.name}: pip install "jmsjca[spark]"') from error

__all__ = ["EventPipeline", "Subscriber"]

logger = get_logger("jmsjca.connector")

Subscriber: TypeAlias = Callable[[DataFrame, int], object] | Destination
"""Takes the business objects of one type: a function of the table of a micro-batch and the number of the batch, or a
queue or topic that gets a message for each one."""

_OF_STAGING = ("in_progress_destination", "container_managed_events", "duplicate_event_elimination")
_LOST = {
    DeliveryOutcome.FAIL: "error_destination",
    DeliveryOutcome.NO_SUBSCRIPTION_FOUND: "unsubscribed_destination",
}


@dataclass
class _Count:
    """The figures of the events of a batch with one outcome."""

    events: int = 0
    messages: int = 0
    reports: int = 0
    objects: dict[str, int] = field(default_factory=dict[str, int])


class EventPipeline:
    """Delivers the messages of input destinations as typed tables, with the outcomes and copies of a `Connector`.

    Data handlers, collaborations and the routing run on the executors. Subscribers run on the driver, one batch after
    the other. A batch that fails is repeated with the same events; the messages stay in the staging location meanwhile.

    Args:
        config: The configuration of the connector. The fields of polls and restarts are not used, because Spark
            schedules the batches.
        subscribers: The subscribers by type of business object. A type without one is not subscribed. Empty if the
            collaboration takes everything.
        collaboration: Called on an executor with each business object, before its subscriber; an outcome other than
            SUCCEED is final. It may be called again with the same object, so it decides and has no other effects.
            A queue or topic gets a message for each object. None for subscribers alone.
        collaborations: The collaborations of events that ask for a report, by the CollaborationName of their rules.
        data_handler: The default data handler; None uses that of the configured class or MIME type.

    Raises:
        ConfigurationError: There is neither a subscriber nor a collaboration, a table has no definition, or the
            configuration has a mode that Spark's staging replaces.
        ProviderNotInstalledError: pyspark or pyarrow is not installed.
    """

    def __init__(
        self,
        config: ConnectorConfig,
        subscribers: Mapping[str, Subscriber] | None = None,
        *,
        collaboration: Collaboration | None = None,
        collaborations: Mapping[str, Collaboration] | None = None,
        data_handler: DataHandler | None = None,
    ) -> None:
        self._config = config
        self._subscribers = dict(subscribers or {})
        _check(config, self._subscribers, collaboration)
        self._subscriptions = {
            kind: _subscription(number, kind, each, config)
            for number, (kind, each) in enumerate(self._subscribers.items())
        }
        handler = default_data_handler(config) if data_handler is None else data_handler
        self._rows = EventRows(config, self._subscriptions, collaboration, collaborations or {}, handler)

    def write_stream(
        self,
        spark: SparkSession,
        checkpoint_location: str,
        *,
        staging_location: str | None = None,
        options: Mapping[str, str | int | float] | None = None,
    ) -> DataStreamWriter:
        """Return the writer of the stream: set its trigger or name, and ``start()`` it.

        Args:
            spark: The session.
            checkpoint_location: The folder of the checkpoint. A checkpoint belongs to the input destinations in their
                order.
            staging_location: The folder with the messages of unfinished batches, shared by the driver and the
                executors; None for a folder beside the checkpoint, named like it with ``.staging`` appended.
            options: Further options of the jms source, ``maxMessagesPerBatch`` for instance.
        """
        folder = f"{checkpoint_location.rstrip('/')}.staging" if staging_location is None else staging_location
        streams = [
            self._stream(spark, source, {"stagingLocation": f"{folder}/{number}", **(options or {})})
            for number, source in enumerate(self._config.input_destination)
        ]
        writer = reduce(DataFrame.union, streams).writeStream.foreachBatch(self.process)
        return writer.option("checkpointLocation", checkpoint_location)

    def events(self, messages: DataFrame, origin: Destination | None = None) -> DataFrame:
        """Return the events of a table of messages, without delivering them.

        Args:
            messages: All columns of a jms source.
            origin: The input destination of the messages; None for the first one of the configuration.

        Returns:
            The columns ``outcome`` and ``message_id``; ``messages`` and ``reports``, which are the copies, reports and
            business objects to be sent; and the business objects of each table as a column.
        """
        if ORIGIN not in messages.columns:
            messages = messages.withColumn(ORIGIN, f.lit(str(origin or self._config.input_destination[0])))
        convert = f.arrow_udf(_vectorised(self._rows), self._rows.schema)
        return messages.select(convert(f.struct("*")).alias("event")).select("event.*")

    def process(self, batch: DataFrame, number: int) -> None:
        """Deliver a batch of messages: first to the subscribers, then copies, messages and reports to the broker.

        Args:
            batch: The messages, all columns of a jms source.
            number: The number of the batch, by which a subscriber recognises one that is repeated.
        """
        events = self.events(batch).persist()
        try:
            counts = self._counts(events)
            self._warn(counts, number)
            for kind, each in self._subscribers.items():
                column = self._subscriptions[kind].column
                if not isinstance(each, Destination) and any(count.objects[column] for count in counts.values()):
                    each(events.where(f.col(column).isNotNull()).select(f"{column}.*"), number)
            for name in ("messages", "reports"):
                if any(getattr(count, name) for count in counts.values()):
                    self._send(events, name)
        finally:
            events.unpersist()

    def _stream(self, spark: SparkSession, source: Destination, options: Mapping[str, str | int | float]) -> DataFrame:
        if isinstance(source, Topic):
            options = {"subscription": source.name, **options}
        named = {"url": self._config.connection_url, "destination": source.name, "destinationType": source.kind}
        messages = spark.readStream.format("jms").options(**named).options(**options).load()
        return messages.withColumn(ORIGIN, f.lit(str(source)))

    def _counts(self, events: DataFrame) -> dict[str, _Count]:
        columns = [each.column for each in self._subscriptions.values() if each.columns is not None]
        sums = [f.sum(f.size(name)).alias(name) for name in ("messages", "reports")]
        found: Any = (
            events.groupBy("outcome").agg(f.count("*").alias("events"), *sums, *(f.count(c).alias(c) for c in columns))
        ).collect()
        return {
            row["outcome"]: _Count(
                row["events"], row["messages"], row["reports"], {column: row[column] for column in columns}
            )
            for row in found
        }

    def _warn(self, counts: Mapping[str, _Count], number: int) -> None:
        for outcome, name in _LOST.items():
            if outcome in counts:
                target = getattr(self._config, name)
                logger.warning(
                    "Batch %d: %d events: %s. The messages are %s.",
                    number,
                    counts[outcome].events,
                    outcome,
                    f"moved to {target}" if target else "discarded, because no destination is configured for them",
                )

    def _send(self, events: DataFrame, name: str) -> None:
        sent = events.select(f.explode(name).alias("sent")).select("sent.*")
        sent.write.format("jms").option("url", self._config.connection_url).mode("append").save()


def _vectorised(rows: EventRows) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the conversion as a function with the annotations by which Spark chooses how to call it."""

    def convert(arrays: Iterator[Any]) -> Iterator[Any]:
        """Convert arrays of messages to arrays of events."""
        return rows.convert(arrays)

    convert.__annotations__ = {"arrays": Iterator[pa.Array], "return": Iterator[pa.Array]}
    return convert


def _check(config: ConnectorConfig, subscribers: Mapping[str, Subscriber], collaboration: Collaboration | None) -> None:
    for name in _OF_STAGING:
        if getattr(config, name):
            raise ConfigurationError(
                f"{name} is not for a pipeline, because Spark keeps messages in its staging location until their batch "
                "is done, and recognises duplicates: empty its queue with a Connector, and leave it out."
            )
    if config.archival_connection_url is not None:
        raise ConfigurationError(
            "archival_connection_url is not for a pipeline, which writes to one broker: leave it out."
        )
    if not config.input_destination:
        raise ConfigurationError("A pipeline needs input destinations: set input_destination.")
    if not subscribers and collaboration is None:
        raise ConfigurationError("A pipeline needs subscribers by type of business object, or a collaboration.")
    if config.connection_url.startswith(LOOKUP):
        raise ConfigurationError(
            f"{config.connection_url} is bound in this process only, and Spark has others: set the URL of the broker."
        )


def _subscription(number: int, kind: str, subscriber: Subscriber, config: ConnectorConfig) -> Subscription:
    if isinstance(subscriber, Destination):
        return Subscription(subscriber)
    return Subscription(None, f"table_{number}", ObjectColumns(kind, config.definitions))
