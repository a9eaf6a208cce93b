"""A source that must lose messages: it acknowledges what it receives, and keeps it in memory until a batch takes it.

So do connectors whose driver receives. They count their offsets from 0 in each process, and send the messages to the
tasks within the partitions.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from jmsjca import ConnectionFactory, Queue

__all__ = ["AcknowledgingSource"]

_BATCH = 200


class _Messages(InputPartition):
    """The messages of a batch."""

    def __init__(self, texts: list[str]) -> None:
        super().__init__(0)
        self.texts = texts


class AcknowledgingReader(DataSourceStreamReader):
    """Receives on the driver, acknowledges at once."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options
        self._texts: list[str] = []

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  # Spark's name
        return {"count": 0}

    def latestOffset(self) -> dict[str, int]:  # noqa: N802  # Spark's name
        with ConnectionFactory(self._options["url"]).create_connection() as connection:
            consumer = connection.create_session().create_consumer(Queue(self._options["destination"]))
            for _ in range(_BATCH):
                message = consumer.receive(timeout=0.2)
                if message is None:
                    break
                self._texts.append(str(message.body))
        return {"count": len(self._texts)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [_Messages(self._texts[start["count"] : end["count"]])]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, _Messages)
        return ((text,) for text in partition.texts)


class AcknowledgingSource(DataSource):
    """The data source."""

    @classmethod
    def name(cls) -> str:
        return "acknowledging"

    def schema(self) -> str:
        return "text string"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        del schema
        return AcknowledgingReader(dict(self.options))
