"""What the benchmarks of Spark share: a session, a queue with messages, plain consumers of it, and goals."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from jmsjca import ConnectionFactory, Message, Queue
from jmsjca.spark import register
from jmsjca.spark.java import find_java

__all__ = ["BODY", "Goal", "consume", "empty", "fill", "read_body", "read_headers", "session"]

UNIT = 100
BODY = "x" * 1024


class Goal(NamedTuple):
    """What a figure should be, and whether it is.

    Args:
        bound: The bound.
        at_most: True if the figure must not exceed the bound, False if it must reach it.
        unit: What stands behind the number.
    """

    bound: float
    at_most: bool = False
    unit: str = ""

    def told(self, figure: float) -> str:
        """Return the goal, and whether a figure meets it."""
        met = figure <= self.bound if self.at_most else figure >= self.bound
        return f"goal {'<=' if self.at_most else '>='} {self.bound:g}{self.unit}: {'met' if met else 'MISSED'}"


def session(folder: Path, cores: int = 2) -> SparkSession:
    """Return a local session that knows "jms"."""
    os.environ["JAVA_HOME"] = str(find_java())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master(f"local[{cores}]").appName("jmsjca bench")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    return spark


def fill(url: str, queue: Queue, count: int) -> None:
    """Send messages of 1 KiB with two properties, in units of 1,000."""
    with ConnectionFactory(url).create_connection() as connection:
        session = connection.create_session(transacted=True)
        producer = session.create_producer(queue)
        for number in range(count):
            producer.send(session.create_text_message(BODY, properties={"region": "EU", "number": number}))
            if number % 1000 == 999:
                session.commit()
        session.commit()


def empty(url: str, queue: Queue) -> None:
    """Remove all messages of a queue, by reading them."""
    consume(url, queue, sys.maxsize, read_body, patience=0.5)


def consume(url: str, queue: Queue, count: int, use: Callable[[Message], object], *, patience: float = 5) -> int:
    """Receive messages in units of 100, as a plain consumer does, and return how many came."""
    read = 0
    with ConnectionFactory(url).create_connection() as connection:
        session = connection.create_session(transacted=True)
        consumer = session.create_consumer(queue)
        while read < count and (message := consumer.receive(patience)) is not None:
            use(message)
            read += 1
            if read % UNIT == 0:
                session.commit()
        session.commit()
    return read


def read_body(message: Message) -> object:
    """Read what the quickest consumer reads."""
    return message.body


def read_headers(message: Message) -> object:
    """Read what a row holds."""
    return (
        *(message.message_id, message.correlation_id, str(message.destination), message.reply_to, message.type),
        *(message.priority, message.timestamp, message.expiration, message.redelivered, message.delivery_count),
        *(dict(message.properties), message.body),
    )
