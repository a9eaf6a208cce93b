"""Fixtures of the Spark tests: a broker in a file, and one Spark session for all of them."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from spark_session import spark_session

from jmsjca import ConnectionFactory, Message, Queue, TextMessage
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.spark.folder_store import FolderStore
from jmsjca.spark.object_store import Bucket, ObjectStore
from jmsjca.spark.options import SourceOptions
from jmsjca.spark.partition import JmsPartition, PartitionReader, close_connections
from jmsjca.spark.staging import EpochPartition, Staging
from jmsjca.spark.staging_location import open_location
from jmsjca.spark.store import Store
from jmsjca.spi import Depth
from jmsjca.testing.contract.harness import prepare
from tests.support.s3_server import CREDENTIALS, S3Server, s3_server


class Broker:
    """An embedded broker in a file, and what a test asks of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"embedded://{folder}/broker.db"
        self.queue = Queue("orders")
        self.location = folder / "staging"
        self.bucket: dict[str, object] = {}  # the options of a bucket
        self.factory = ConnectionFactory(self.url)

    def given(self, **changes: object) -> dict[str, str]:
        """Options as Spark hands them over; nothing waits for messages that are not there."""
        options = {
            "url": self.url,
            "destination": self.queue.name,
            "stagingLocation": self.location,
            "receiveIdleTimeout": 0,
            "pollInterval": 0,
        }
        return {name: str(value) for name, value in (options | self.bucket | changes).items()}

    def sink(self, **changes: object) -> dict[str, str]:
        """Options of a sink, and of a batch source."""
        options = {"url": self.url, "destination": self.queue.name}
        return {name: str(value) for name, value in (options | changes).items() if value is not None}

    def options(self, **changes: object) -> SourceOptions:
        return SourceOptions.parse(self.given(**changes))

    def staging(self, gen: str = "g", *epochs: int) -> Staging:
        staging = Staging(self.options().staging(), gen)
        for epoch in epochs:
            staging.create_epoch(epoch)
        return staging

    def reader(self, part: EpochPartition, quota: int = 100, **changes: object) -> PartitionReader:
        self.staging("g", part.epoch)
        return PartitionReader(self.options(**changes), JmsPartition("g", part, quota))

    def read(self, part: EpochPartition, quota: int = 100, **changes: object) -> list[dict[str, object]]:
        """What one attempt at a partition hands over."""
        return [row for batch in self.reader(part, quota, **changes).read() for row in batch.to_pylist()]

    def texts(self, part: EpochPartition, quota: int = 100, **changes: object) -> list[object]:
        return [row["text"] for row in self.read(part, quota, **changes)]

    def send(self, *texts: str, correlation_id: str | None = None) -> None:
        self.send_messages(*(TextMessage(text, correlation_id=correlation_id) for text in texts))

    def send_messages(self, *messages: Message) -> None:
        """Send messages in one transaction."""
        with self.factory.create_connection() as connection, connection.create_session(transacted=True) as session:
            producer = session.create_producer(self.queue)
            for message in messages:
                producer.send(message)
            session.commit()

    def waiting(self) -> list[str]:
        """The texts of the messages in the queue that nobody holds."""
        connection = connect(ConnectionSettings(self.url))
        try:
            return [d.message.body for chunk in connection.browse(self.queue) for d in chunk]
        finally:
            connection.close()

    def send_at(self, time: datetime, *texts: str) -> None:
        """Send texts that say that they were sent at a time."""
        connection = connect(ConnectionSettings(self.url))
        try:
            unit = connection.unit()
            for text in texts:
                message = prepare(TextMessage(text), self.queue)
                message.timestamp = time
                unit.send(message, self.queue)
            unit.commit()
        finally:
            connection.close()

    def message_bytes(self) -> int:
        """The size of the first message in the queue, with its headers."""
        connection = connect(ConnectionSettings(self.url))
        try:
            return next(d.size for chunk in connection.browse(self.queue) for d in chunk)
        finally:
            connection.close()

    def depth(self) -> Depth:
        connection = connect(ConnectionSettings(self.url))
        try:
            admin = connection.admin()
            assert admin is not None
            return admin.depth(self.queue)
        finally:
            connection.close()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    yield Broker(tmp_path)
    close_connections()


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """One server for all tests."""
    with s3_server() as server:
        yield server


@pytest.fixture(params=["folder", "objects", "s3"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Staging locations: a folder, an object store in a folder, and S3."""
    if request.param == "folder":
        return FolderStore(tmp_path / "staging")
    if request.param == "objects":
        pytest.importorskip("obstore")
        (tmp_path / "bucket").mkdir()
        return ObjectStore(Bucket(f"file://{tmp_path}/bucket"))
    server = request.getfixturevalue("s3")
    return open_location(server.new_bucket(), endpoint=server.endpoint, credentials=CREDENTIALS)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for all tests."""
    with spark_session(tmp_path_factory.mktemp("spark")) as session:
        yield session
