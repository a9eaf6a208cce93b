"""The connector after the death of its process."""

import signal
import subprocess
import sys
import time

import pytest

from jmsjca import ConnectionFactory, Queue
from jmsjca.connector import Connector, ConnectorConfig, ReturnCode

PATIENCE = 60  # seconds
ORDER = '{"_type": "Order", "id": "a"}'


@pytest.mark.parametrize("in_progress", [None, "held"])
def test_an_event_survives_the_death_of_the_process_during_its_delivery(tmp_path, in_progress):
    url = f"embedded://{tmp_path}/broker.db"
    program = (
        "import os, signal\n"
        "from jmsjca.connector import Connector, ConnectorConfig\n"
        f"config = ConnectorConfig(connection_url={url!r}, input_destination='in', "
        f"in_progress_destination={in_progress!r})\n"
        "Connector(config, lambda _: os.kill(os.getpid(), signal.SIGKILL)).poll_for_events()\n"
    )
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue("in")).send(ORDER)
    died = subprocess.run([sys.executable, "-c", program], check=False, timeout=250)
    assert died.returncode == -signal.SIGKILL
    orders = []
    config = ConnectorConfig(
        connection_url=url,
        input_destination="in",
        in_progress_destination=in_progress,
        archive_destination="archive",
        receive_timeout=1,
    )
    deadline = time.monotonic() + PATIENCE
    with Connector(config, lambda order: orders.append(order.get("id"))) as connector:
        while not orders:  # the store releases the messages of a dead process after a moment
            assert time.monotonic() < deadline, "the event is lost"
            assert connector.poll_for_events() is ReturnCode.SUCCEED
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        left = {name: session.create_consumer(Queue(name)).receive(0) for name in ("in", "held", "archive")}
    assert (orders, left["in"], left["held"], left["archive"].body) == (["a"], None, None, ORDER)
