"""A process that still has a connection at its exit ends in order."""

import subprocess
import sys

import pytest
from amqp_peer.peer import Broker

from tests.unit.providers.amqp.scripted_broker import SECONDS

PROGRAM = """
import atexit, sys

opened = []
if sys.argv[2] == "closed at exit":
    atexit.register(lambda: opened[0].close())  # runs after all that is registered from here on, by proton too

from jmsjca import ConnectionFactory, Queue

opened.append(ConnectionFactory(sys.argv[1]).create_connection())
opened[0].create_session().create_consumer(Queue("q"))
"""


@pytest.mark.parametrize("end", ["closed at exit", "left open"])
def test_a_connection_that_is_open_at_exit_ends_no_process(stage, end):
    url = f"amqp://{stage(Broker()).peer.address}?heartbeat=0"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, url, end], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
