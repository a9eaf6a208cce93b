"""An embedded broker of each test's own, with connectors on it."""

import itertools

import pytest

from jmsjca import ConnectionFactory, Queue
from jmsjca.connector import Connector, ConnectorConfig

_numbers = itertools.count()


@pytest.fixture
def url():
    return f"embedded://connectors-{next(_numbers)}"


@pytest.fixture
def session(url):
    """A session of another program."""
    with ConnectionFactory(url).create_connection() as connection:
        yield connection.create_session()


@pytest.fixture
def messages(session):
    """Return the messages of a queue without removing them."""

    def browse(queue):
        with session.create_browser(Queue(queue)) as browser:
            return list(browser)

    return browse


@pytest.fixture
def connector(url):
    """Create connectors on the broker, which are closed afterwards."""
    created = []

    def create(collaboration=None, **fields):
        fields = {"connection_url": url, "input_destination": "in", "restart_retry_interval": 0, **fields}
        created.append(Connector(ConnectorConfig(**fields), collaboration))
        return created[-1]

    yield create
    for each in created:
        each.close()
