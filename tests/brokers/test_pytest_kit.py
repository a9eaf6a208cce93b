"""The fixtures of the pytest kit work on real brokers, as another project uses them."""

import subprocess
import sys

import pytest

PATIENCE = 240
PROJECT = """
import pytest

from jmsjca import ConnectionFactory, Reject
from jmsjca.errors import ConnectionLostError, TransactionInDoubtError


def received(factory, queue):
    with factory.create_connection() as connection, connection.create_session() as session:
        return session.create_consumer(queue).receive_body(str, timeout=60)


def test_the_recorder(jms_adapter, jms_queue, jms_recorder, jms_calls):
    jms_adapter.listener(jms_queue, redelivery_handling="3:delete")(jms_recorder)
    jms_recorder.fail_next()
    jms_adapter.send(jms_queue, "a pear")
    jms_recorder.assert_received("a pear")
    assert [call.error is None for call in jms_calls.wait_for(jms_queue, 2)] == [False, True]


def test_deliveries_that_fail(jms_adapter, jms_queue, jms_recorder, jms_calls):
    jms_adapter.listener(jms_queue, redelivery_handling="3:delete")(jms_recorder)
    jms_calls.fail_next(2)
    jms_adapter.send(jms_queue, "a pear")
    jms_recorder.assert_received("a pear")
    assert len(jms_calls.of(jms_queue)) == 3


@pytest.mark.parametrize(
    ("when", "error", "first"),
    [
        ("before", ConnectionLostError, "b"),
        ("during", TransactionInDoubtError, "b"),
        ("after", TransactionInDoubtError, "a"),
    ],
)
def test_a_cut(jms_faults, jms_connection_factory, jms_queue, when, error, first):
    jms_faults.cut(when)
    with pytest.raises(error), jms_connection_factory.create_connection() as connection:
        session = connection.create_session(transacted=True)
        session.create_producer(jms_queue).send("a")
        session.commit()
    jms_connection_factory.send(jms_queue, "b")
    assert received(jms_connection_factory, jms_queue) == first
    jms_connection_factory.close()


def test_a_restart(jms_faults, jms_adapter, jms_queue, jms_recorder, jms_calls, jms_clock):
    jms_adapter.listener(jms_queue)(jms_recorder)
    jms_adapter.send(jms_queue, "before")
    jms_recorder.assert_received("before")
    jms_faults.restart_broker()
    jms_adapter.send(jms_queue, "after")
    jms_clock.advance_until(lambda: "after" in jms_recorder.bodies, step=1, timeout=60)


def test_a_slow_disk(jms_faults, jms_connection_factory, jms_queue):
    jms_faults.slow_disk(0.01)
    jms_connection_factory.send(jms_queue, "a pear")
    assert received(jms_connection_factory, jms_queue) == "a pear"
    jms_connection_factory.close()
"""
IDLE = """

def test_idle(jms_adapter, jms_queue, jms_recorder, jms_wait_until_idle):
    jms_adapter.listener(jms_queue)(jms_recorder)
    jms_adapter.send_many(jms_queue, ["a pear"] * 20)
    jms_wait_until_idle()
    assert len(jms_recorder.bodies) == 20
"""


@pytest.mark.parametrize(
    ("pair", "project", "passed"),
    [("artemis-amqp", PROJECT + IDLE, 8), ("activemq-stomp", PROJECT, 7)],
    ids=["artemis-amqp", "activemq-stomp"],
)
def test_a_project_tests_on_a_real_broker(broker_url, tmp_path, pair, project, passed):
    (tmp_path / "test_project.py").write_text(project)
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--jms-broker", broker_url(pair), "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert f"{passed} passed" in done.stdout, done.stdout + done.stderr
