"""Fixtures of the unit tests."""

import gc
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jmsjca import Connection, ConnectionFactory, ResourceAdapter, Session
from jmsjca.providers.embedded.connection import EmbeddedConnection
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.inbound.listeners import Recorder

Connect = Callable[[], EmbeddedConnection]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test whose conformance cases are missing although their folder is named."""
    if (missing := item.get_closest_marker("missing_cases")) is not None:
        pytest.fail(missing.kwargs["reason"])


@pytest.fixture(autouse=True)
def _own_records(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Keep records of earlier tests out of ``caplog``: a handler that was abandoned at a deadline logs later."""
    earlier = set(threading.enumerate()) - {threading.current_thread()}

    def is_own(_: logging.LogRecord) -> bool:
        return threading.current_thread() not in earlier

    caplog.handler.addFilter(is_own)
    yield
    caplog.handler.removeFilter(is_own)


@pytest.fixture
def connected(jms_broker_url: str) -> Iterator[Connect]:
    """Opens connections to a memory broker."""
    yield from _opener(jms_broker_url)


@pytest.fixture
def broker_file(tmp_path: Path) -> Path:
    return tmp_path / "broker.db"


@pytest.fixture
def connected_file(broker_file: Path) -> Iterator[Connect]:
    """Opens connections to a broker in a file."""
    yield from _opener(f"embedded://{broker_file}")


@pytest.fixture
def connection(jms_connection_factory: ConnectionFactory) -> Iterator[Connection]:
    """A started connection, as applications have it."""
    with jms_connection_factory.create_connection() as connection:
        yield connection


@pytest.fixture
def session(connection: Connection) -> Iterator[Session]:
    """A transacted session of that connection."""
    with connection.create_session(transacted=True) as session:
        yield session


def _opener(url: str) -> Iterator[Connect]:
    connections: list[EmbeddedConnection] = []

    def open_connection() -> EmbeddedConnection:
        connections.append(connect(ConnectionSettings(url)))  # type: ignore[arg-type]  # an embedded URL
        return connections[-1]

    yield open_connection
    for connection in reversed(connections):
        connection.close()


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def adapter(jms_broker_url: str, recorder: Recorder) -> Iterator[ResourceAdapter]:
    """An adapter whose changes and outcomes are recorded."""
    adapter = ResourceAdapter(jms_broker_url, hooks=[recorder])
    yield adapter
    adapter.stop()


@pytest.fixture
def no_collector() -> Iterator[None]:
    """What nobody refers to goes at once, what is in a circle stays."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
