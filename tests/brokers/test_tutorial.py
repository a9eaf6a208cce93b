"""The service of the tutorial runs on Artemis as it is, by the commands of the page."""

import os
import sys
from pathlib import Path

import pytest

from jmsjca import ConnectionFactory, Queue
from tests.docs.replay import BROKER, TUTORIAL, replay, steps_of


@pytest.mark.parametrize("pair", ["artemis-amqp"])
def test_the_service_of_the_tutorial_runs_on_a_broker(pair, broker_url, tmp_path):
    url = broker_url(pair)
    with ConnectionFactory(url).create_connection() as connection:
        for queue in ("orders", "invoices"):
            connection.admin.purge(Queue(queue))
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"]),
        "PYTHONPATH": str(TUTORIAL.parents[1]),
        "COLUMNS": "200",
    }
    steps = steps_of(TUTORIAL.read_text().replace(BROKER, url))
    on_broker = [step for step in steps if step.file or "broker" in step.needs]
    assert any("invoice 6" in step.output for step in on_broker)
    replay(on_broker, tmp_path, environment, offered={"broker"})
