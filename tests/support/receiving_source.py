"""The data source "receiving": the design of a connector whose driver receives, as `activemq_pyspark_connector` has it.

It must lose messages. Its reader subscribes when it is made and when it is unpickled, so each task subscribes, too. The
subscription acknowledges automatically. The messages stay in a dictionary of the process, from which the driver sends
them within the partitions, and the offset counts them, from 0 in each process.
"""

import threading

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from jmsjca import ConnectionFactory, Queue
from jmsjca.errors import JMSError

__all__ = ["ReceivingSource"]


class Messages(InputPartition):
    """The messages of a batch."""

    def __init__(self, texts) -> None:
        super().__init__(0)
        self.texts = texts


class ReceivingReader(DataSourceStreamReader):
    """The reader."""

    def __init__(self, options) -> None:
        self._options = options
        self._subscribe()

    def __getstate__(self):
        return self._options

    def __setstate__(self, options) -> None:
        self._options = options
        self._subscribe()

    def _subscribe(self) -> None:
        self._messages: dict[int, str] = {}
        threading.Thread(target=self._receive, daemon=True).start()

    def _receive(self) -> None:
        try:
            with ConnectionFactory(self._options["url"]).create_connection() as connection:
                consumer = connection.create_session().create_consumer(Queue(self._options["destination"]))
                while True:
                    if message := consumer.receive(1):
                        self._messages[len(self._messages)] = message.body
        except JMSError:  # as at the end of a process
            return

    def initialOffset(self):  # noqa: N802  # Spark's name
        return {"count": 0}

    def latestOffset(self):  # noqa: N802  # Spark's name
        return {"count": len(self._messages)}

    def partitions(self, start, end):
        return [Messages([self._messages[n] for n in range(start["count"], end["count"]) if n in self._messages])]

    def read(self, partition):
        return ((text,) for text in partition.texts)


class ReceivingSource(DataSource):
    """The data source."""

    @classmethod
    def name(cls) -> str:
        return "receiving"

    def schema(self) -> str:
        return "text string"

    def streamReader(self, schema):  # noqa: N802  # Spark's name
        del schema
        return ReceivingReader(dict(self.options))
