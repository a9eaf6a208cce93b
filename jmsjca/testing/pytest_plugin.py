"""The pytest plugin: a broker for each test. pytest finds it by its entry point, so no import is needed.

Each fixture can be overridden. A new ``jms_broker_url`` also applies to the other fixtures::

    @pytest.fixture
    def jms_broker_url(tmp_path):
        return f"embedded://{tmp_path}/broker.db"

``pytest --jms-broker memory --jms-broker amqp://localhost`` runs the tests that use ``jms_broker_url`` once for each
broker.
"""

from __future__ import annotations

import re
import sys
import uuid
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from jmsjca import ConnectionFactory
    from jmsjca.adapter import ResourceAdapter
    from jmsjca.destinations import Queue
    from jmsjca.testing.call_recorder import CallRecorder
    from jmsjca.testing.faults import FaultInjection
    from jmsjca.testing.recorder import MessageRecorder
    from jmsjca.testing.time_travel import TimeTravel

__all__ = [
    "jms_adapter",
    "jms_adapter_options",
    "jms_broker",
    "jms_broker_url",
    "jms_calls",
    "jms_clock",
    "jms_connection_factory",
    "jms_faults",
    "jms_queue",
    "jms_recorder",
    "jms_stopped_adapter",
    "jms_wait_until_idle",
]

# The contract suite is plain asserts in a package: without this a failure would not show the compared values.
pytest.register_assert_rewrite("jmsjca.testing.contract", "jmsjca.testing.inbound")

_BROKERS = "jms_brokers"
_BROKER = "jms_broker"
_PATIENCE = 30.0  # seconds for handlers to return after a test
_EARLY = ("jms_clock", "jms_faults")  # they change what the adapter opens


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option and the setting that name the brokers to test against."""
    words = 'brokers for the tests that use jms_broker_url: "memory", "file" (embedded brokers) or a connection URL'
    parser.getgroup("jmsjca").addoption("--jms-broker", action="append", dest=_BROKERS, metavar="BROKER", help=words)
    parser.addini(_BROKERS, words, type="linelist", default=[])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that uses the fixture `jms_broker` once for each broker that was named.

    Args:
        metafunc: The test function.
    """
    brokers = metafunc.config.getoption(_BROKERS) or metafunc.config.getini(_BROKERS)
    own = any(_BROKER in _parameters(mark) for mark in metafunc.definition.iter_markers("parametrize"))
    if brokers and not own and _BROKER in metafunc.fixturenames:
        metafunc.parametrize(_BROKER, brokers, indirect=True)


def _parameters(mark: pytest.Mark) -> list[str]:
    """Return the names of the parameters of a mark ``parametrize``."""
    [names] = mark.args[:1] or [mark.kwargs.get("argnames", ())]
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)


@pytest.fixture
def jms_broker(request: pytest.FixtureRequest) -> str:
    """Provide the broker of the test: "memory", "file" or a connection URL; "memory" unless others are named.

    Args:
        request: The test. Its parameter names the broker.
    """
    return str(getattr(request, "param", "memory"))


@pytest.fixture
def jms_broker_url(jms_broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Provide the URL of the broker: by default an embedded broker in memory. Messages are deleted after the test.

    Args:
        jms_broker: The broker: "memory", "file" or a connection URL.
        tmp_path_factory: Makes the folder of a broker in a file.

    Yields:
        The connection URL.
    """
    from jmsjca.providers.embedded.store.store import drop_memory_store  # loaded by the tests that need it

    if jms_broker == "file":
        yield f"embedded://{tmp_path_factory.mktemp('broker')}/broker.db"
    elif jms_broker != "memory":
        yield jms_broker
    else:
        name = f"test-{uuid.uuid4().hex}"
        yield f"embedded://{name}"
        drop_memory_store(name)


@pytest.fixture
def jms_connection_factory(jms_broker_url: str) -> ConnectionFactory:
    """Provide a connection factory for the broker of the test.

    Args:
        jms_broker_url: The URL of the broker.
    """
    from jmsjca import ConnectionFactory  # loaded by the tests that need it

    return ConnectionFactory(jms_broker_url)


@pytest.fixture
def jms_queue() -> Queue:
    """Provide a queue with a unique name, so that tests on one broker do not meet."""
    from jmsjca.destinations import Queue  # loaded by the tests that need it

    return Queue(f"test.{uuid.uuid4().hex}")


@pytest.fixture
def jms_adapter_options() -> dict[str, Any]:
    """Provide further arguments of the test's `ResourceAdapter`. Override it to configure the adapter."""
    return {}


@pytest.fixture
def jms_stopped_adapter(
    jms_broker_url: str,
    jms_calls: CallRecorder,
    jms_adapter_options: dict[str, Any],
    request: pytest.FixtureRequest,
) -> Iterator[ResourceAdapter]:
    """Provide a resource adapter for the broker of the test that is not started, for example for ``async with``.

    Args:
        jms_broker_url: The URL of the broker.
        jms_calls: Records the calls of the handlers.
        jms_adapter_options: Further arguments of the adapter.
        request: The test.

    Yields:
        The adapter; it is stopped after the test.
    """
    from jmsjca.adapter import ResourceAdapter  # loaded by the tests that need it

    for name in _EARLY:
        if name in request.fixturenames:
            request.getfixturevalue(name)
    options: dict[str, Any] = {**jms_adapter_options, "hooks": [jms_calls, *jms_adapter_options.get("hooks", ())]}
    adapter = ResourceAdapter(jms_broker_url, **options)
    yield adapter
    _stop(adapter)


@pytest.fixture
def jms_adapter(jms_stopped_adapter: ResourceAdapter) -> Iterator[ResourceAdapter]:
    """Provide a started resource adapter for the broker of the test: listeners declared in the test start at once.

    Args:
        jms_stopped_adapter: The adapter.

    Yields:
        The adapter; it is stopped after the test.
    """
    with jms_stopped_adapter as adapter:
        yield adapter
        _stop(adapter)  # the end of the block would wait forever


def _stop(adapter: ResourceAdapter) -> None:
    """Stop the adapter of a test. A handler that does not return fails its test, and does not block the run.

    Args:
        adapter: The adapter.
    """
    running = [each for each in adapter.activations if each.status != "Down"]
    if adapter.stop(_PATIENCE):
        return
    names = ", ".join(each.name for each in running if each.stats.n_active_endpoints)
    if names:
        pytest.fail(f"{names}: its handler has not returned within {_PATIENCE:g} s after the test.", pytrace=False)


@pytest.fixture
def jms_calls() -> CallRecorder:
    """Provide the calls of the handlers of ``jms_adapter``: ``jms_calls.wait_for("orders")``."""
    from jmsjca.testing.call_recorder import CallRecorder  # loaded by the tests that need it

    return CallRecorder()


@pytest.fixture
def jms_recorder() -> MessageRecorder:
    """Provide a handler that records messages: ``jms_adapter.listener("orders")(jms_recorder)``."""
    from jmsjca.testing.recorder import MessageRecorder  # loaded by the tests that need it

    return MessageRecorder()


@pytest.fixture
def jms_wait_until_idle(jms_stopped_adapter: ResourceAdapter) -> Callable[..., None]:
    """Provide `jmsjca.testing.idle.wait_until_idle` for the adapter of the test.

    Args:
        jms_stopped_adapter: The adapter, which may be started.
    """
    from functools import partial  # loaded by the tests that need it

    from jmsjca.testing.idle import wait_until_idle  # loaded by the tests that need it

    return partial(wait_until_idle, jms_stopped_adapter)


@pytest.fixture
def jms_clock(monkeypatch: pytest.MonkeyPatch) -> TimeTravel:
    """Provide the clock, which ``jms_clock.advance(3600)`` moves forward for the embedded broker and for listeners.

    Args:
        monkeypatch: Undoes the change after the test.
    """
    from jmsjca.testing.time_travel import TimeTravel  # loaded by the tests that need it

    return TimeTravel(monkeypatch)


@pytest.fixture
def jms_faults(monkeypatch: pytest.MonkeyPatch) -> FaultInjection:
    """Provide faults between jmsjca and the broker: ``jms_faults.cut("before")``, ``jms_faults.restart_broker()``.

    Args:
        monkeypatch: Removes the faults after the test.
    """
    from jmsjca.testing.faults import FaultInjection  # loaded by the tests that need it

    return FaultInjection(monkeypatch)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a case of the contract suite that is skipped for another reason than a capability.

    Args:
        item: The test.
    """
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and _is_contract_case(item):
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        if not re.search(r"capability \w", reason):
            report.outcome = "failed"
            report.longrepr = f"A case of the contract is skipped for the lack of a capability only, not so: {reason}"
    return report


def _is_contract_case(item: pytest.Item) -> bool:
    """Return True if the fixture ``harness`` of a test is the contract's; users may have a fixture of that name."""
    module = sys.modules.get("jmsjca.testing.contract.harness")  # loaded by each case; not to be loaded by other tests
    return module is not None and isinstance(getattr(item, "funcargs", {}).get("harness"), module.Harness)
