"""Brokers for tests: shared ones by URL, and some of a test's own to kill and to restart."""

import os

import pytest
import rabbitmq_crashes
from brokers import BrokerMissing, registry
from brokers.logs import keep_log
from brokers.postgresql import PostgreSQL
from brokers.registry import url_of
from certificate_authority import Authority
from encrypted_artemis import EncryptedArtemis
from gap_clients import client, listener  # noqa: F401  # fixtures
from gap_links import address, amqp, wire  # noqa: F401  # fixtures
from jms_java import JavaPeer

LOGS = ".pytest-brokers"
SHOWN = 5  # lines of the log of each broker, with a case that failed: the failure itself should be seen beside them


def pytest_configure(config):
    config.pluginmanager.register(rabbitmq_crashes)


def demand(supply, *arguments):
    """Return what is supplied; a missing broker fails where everything must be tested, and skips elsewhere."""
    try:
        return supply(*arguments)
    except BrokerMissing as problem:
        if os.environ.get("CI"):
            pytest.fail(str(problem))
        pytest.skip(str(problem))


@pytest.fixture(scope="session")
def supply():
    """Return a function that calls another one, and skips the test if what that one needs is missing."""
    return demand


@pytest.fixture(scope="session")
def broker_url():
    """Return a function that tells the URL of a pair of ``brokers.PAIRS`` and starts its broker if need be."""
    yield lambda pair: demand(url_of, pair)
    registry.discard_shared()


@pytest.fixture
def own_broker():
    """Return a function that starts a broker of this test's own by its name."""
    yield lambda name: demand(registry.own(name).start)
    registry.discard_own()


@pytest.fixture(scope="session")
def postgresql():
    """Return a PostgreSQL for all tests."""
    server = PostgreSQL()
    try:
        yield demand(server.start)
    finally:
        registry.discard(server)


@pytest.fixture(scope="module")
def encrypted_artemis(tmp_path_factory):
    """Return an Artemis that speaks AMQP over TLS, and the authority that has certified it."""
    authority = Authority(tmp_path_factory.mktemp("authority"))
    broker = EncryptedArtemis(authority)
    try:
        yield demand(broker.start), authority
    finally:
        registry.discard(broker)


@pytest.fixture(scope="session")
def java():
    """Java's clients of JMS, in one process for all tests."""
    peer = demand(JavaPeer)
    yield peer
    peer.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        for name, broker in registry.known().items():
            if broker.log.exists():
                kept = keep_log(broker, name, item.config.rootpath / LOGS)
                report.sections.append((f"the log of {name} is kept in {kept}", broker.log_tail(SHOWN)))
    return report
