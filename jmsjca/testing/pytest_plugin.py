"""The pytest plugin: a broker for each test. pytest finds it by its entry point; nothing is to be imported.

Each fixture can be overridden. One that gives another ``jms_broker_url`` moves the others to that broker::

    @pytest.fixture
    def jms_broker_url(tmp_path):
        return f"embedded://{tmp_path}/broker.db"
"""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from jmsjca import ConnectionFactory
    from jmsjca.adapter import ResourceAdapter
    from jmsjca.testing.recorder import MessageRecorder
    from jmsjca.testing.time_travel import TimeTravel

__all__ = ["jms_adapter", "jms_broker_url", "jms_clock", "jms_connection_factory", "jms_recorder"]

# The contract suite is plain asserts in a package: without this a failure would not show the values compared.
pytest.register_assert_rewrite("jmsjca.testing.contract", "jmsjca.testing.inbound")


@pytest.fixture
def jms_broker_url() -> Iterator[str]:
    """Provide the URL of an embedded broker in memory for this test; its messages are deleted after the test.

    Yields:
        The connection URL.
    """
    from jmsjca.providers.embedded.store.store import drop_memory_store  # noqa: PLC0415  # loaded by the tests that need it

    name = f"test-{uuid.uuid4().hex}"
    yield f"embedded://{name}"
    drop_memory_store(name)


@pytest.fixture
def jms_connection_factory(jms_broker_url: str) -> ConnectionFactory:
    """Provide a connection factory for the broker of the test.

    Args:
        jms_broker_url: The URL of the broker.
    """
    from jmsjca import ConnectionFactory  # noqa: PLC0415  # loaded by the tests that need it

    return ConnectionFactory(jms_broker_url)


@pytest.fixture
def jms_adapter(jms_broker_url: str) -> Iterator[ResourceAdapter]:
    """Provide a started resource adapter for the broker of the test: listeners declared in the test start at once.

    Args:
        jms_broker_url: The URL of the broker.

    Yields:
        The adapter; it is stopped after the test.
    """
    from jmsjca.adapter import ResourceAdapter  # noqa: PLC0415  # loaded by the tests that need it

    with ResourceAdapter(jms_broker_url) as adapter:
        yield adapter


@pytest.fixture
def jms_recorder() -> MessageRecorder:
    """Provide a handler that records messages: ``jms_adapter.listener("orders")(jms_recorder)``."""
    from jmsjca.testing.recorder import MessageRecorder  # noqa: PLC0415  # loaded by the tests that need it

    return MessageRecorder()


@pytest.fixture
def jms_clock(monkeypatch: pytest.MonkeyPatch) -> TimeTravel:
    """Provide the clock, which ``jms_clock.advance(3600)`` moves forward for the embedded broker and for listeners.

    Args:
        monkeypatch: Undoes the change after the test.
    """
    from jmsjca.testing.time_travel import TimeTravel  # noqa: PLC0415  # loaded by the tests that need it

    return TimeTravel(monkeypatch)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Make a case of the contract suite fail that is skipped for another reason than a capability.

    Args:
        item: The test.
    """
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and "harness" in getattr(item, "funcargs", {}):
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        if not re.search(r"capability \w", reason):
            report.outcome = "failed"
            report.longrepr = f"A case of the contract is skipped for the lack of a capability only, not so: {reason}"
    return report
