import contextlib
import pickle
import sqlite3

import pytest

from jmsjca import ConnectionFactory, Queue
from jmsjca.errors import ConnectionLostError, InvalidURLError
from jmsjca.spark import reader as module
from jmsjca.spark.options import SparkOptions
from jmsjca.spark.reader import Probe
from jmsjca.spi import Capabilities


@pytest.fixture
def url(tmp_path):
    return f"embedded://{tmp_path}/broker.db"


@pytest.fixture
def probe(url):
    with contextlib.closing(Probe(SparkOptions(url, "q", pollInterval=0, driverRetryTimeout=0))) as probe:
        yield probe


def send(url, body="hello"):
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue("q")).send(session.create_text_message(body))


def test_it_sees_messages_and_takes_none(probe, url):
    assert not probe.has_messages()
    send(url)
    assert probe.has_messages()
    assert probe.depth() == 1


def test_a_message_that_cannot_be_decoded_is_a_message(probe, url, tmp_path):
    """Otherwise one poison message at the head of the queue would stop the stream for ever."""
    send(url)
    with contextlib.closing(sqlite3.connect(tmp_path / "broker.db")) as db:
        db.execute("UPDATE message SET headers = 'no JSON'")
        db.commit()
    assert probe.has_messages()


def test_an_outage_is_put_up_with_for_a_time(url, monkeypatch, caplog):
    probe = Probe(SparkOptions(url, "q", pollInterval=0, driverRetryTimeout=1e9))

    def refuse(*_):
        raise ConnectionLostError("the broker is down")

    monkeypatch.setattr(module, "connect", refuse)
    assert not any(probe.has_messages() for _ in range(5))
    assert len(caplog.records) == 1
    probe = Probe(SparkOptions(url, "q", pollInterval=0, driverRetryTimeout=0))
    with pytest.raises(ConnectionLostError):
        any(probe.has_messages() for _ in range(1_000_000))


def test_a_wrong_url_is_not_put_up_with(tmp_path):
    probe = Probe(SparkOptions(f"embedded://{tmp_path}/missing/broker.db", "q", pollInterval=0))
    with pytest.raises(InvalidURLError):
        probe.has_messages()


class Blind:
    """A connection to a broker that lets nobody look."""

    capabilities = Capabilities()

    def close(self):
        pass


def test_where_nobody_can_look_messages_may_wait(url, monkeypatch):
    """But the connection is watched: no epoch is opened while the broker is down."""
    opened = []
    monkeypatch.setattr(module, "connect", lambda settings, lost: opened.append(lost) or Blind())
    probe = Probe(SparkOptions(url, "q", pollInterval=0))
    assert probe.has_messages()
    assert probe.has_messages()
    assert len(opened) == 1
    opened[0](ConnectionLostError("the broker went away"))
    assert probe.has_messages()
    assert len(opened) == 2


def test_a_copy_has_no_connection(probe, url):
    assert not probe.has_messages()
    copy = pickle.loads(pickle.dumps(probe))  # noqa: S301
    assert copy._connection is None
