"""The pytest plugin, as other projects use it."""

import subprocess
import sys
import textwrap
from pathlib import Path

from jmsjca import Queue, TextMessage

PATIENCE = 120

_TESTS = """
import threading
import pytest
from jmsjca import Message, Queue

URLS = []

@pytest.mark.parametrize("run", [1, 2])
def test_each_test_has_a_broker_of_its_own(jms_broker_url, jms_connection_factory, run):
    URLS.append(jms_broker_url)
    with jms_connection_factory.create_connection() as connection, connection.create_session() as session:
        assert list(session.create_browser(Queue("q"))) == []
        session.create_producer(Queue("q")).send(session.create_text_message("left behind"))

def test_brokers_are_forgotten():
    from jmsjca.providers.embedded.store.store import _open
    assert len(set(URLS)) == 2
    assert not _open.by_place

def test_listener_begins_at_once(jms_adapter, jms_connection_factory):
    got = threading.Event()

    @jms_adapter.listener("orders")
    def on_order(message: Message):
        got.set()

    with jms_connection_factory.create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue("orders")).send(session.create_text_message("a"))
    assert got.wait(60)

class TestOverridden:
    @pytest.fixture
    def jms_broker_url(self, tmp_path):
        return f"embedded://{tmp_path}/broker.db"

    def test_all_fixtures_follow(self, jms_broker_url, jms_connection_factory, jms_adapter, tmp_path):
        assert jms_broker_url in repr(jms_connection_factory)
        assert jms_broker_url in repr(jms_adapter)
        jms_connection_factory.create_connection().close()
        assert (tmp_path / "broker.db").exists()
"""

_PROVIDER = """
import pytest
from jmsjca.testing.contract import *

@pytest.fixture
def jms_broker_url():
    return "embedded://third-party"
"""


def run(folder: Path, text: str, *arguments: str) -> str:
    """Run pytest on a project of one file, with every warning an error; give what it printed."""
    (folder / "test_project.py").write_text(textwrap.dedent(text))
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", *arguments, "."]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return result.stdout + result.stderr


def test_fixtures(tmp_path):
    assert "5 passed" in run(tmp_path, _TESTS)


def test_provider_runs_the_suite_with_three_lines(tmp_path):
    output = run(tmp_path, _PROVIDER, "-k", "TestOrdering or TestUnitStates")
    assert " passed" in output
    assert "failed" not in output
    assert "error" not in output


def test_fixtures_work_together_here(jms_broker_url, jms_connection_factory, jms_adapter):
    assert jms_broker_url in repr(jms_connection_factory)
    with jms_connection_factory.create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue("q")).send(TextMessage("a"))
    with jms_adapter.connection_factory().create_connection() as connection:
        assert connection.admin.depth(Queue("q")).ready == 1


_BLOCKED = """
import threading
import pytest
from jmsjca.testing import pytest_plugin

pytest_plugin._PATIENCE = 0.1
released = threading.Event()

@pytest.fixture(params=["jms_adapter", "jms_stopped_adapter"])
def adapter(request):
    return request.getfixturevalue(request.param)

@pytest.mark.parametrize("mode", ["serial", "cc"])
def test_that_fails_before_it_releases_its_handler(adapter, mode):
    active = threading.Event()

    def handler(message):
        active.set()
        released.wait()

    adapter.listener("orders", concurrency_mode=mode, redelivery_handling="")(handler)
    adapter.start()
    adapter.send("orders", "a pear")
    assert active.wait(60)
    assert not "the reason"

def test_that_stops_by_itself(adapter):
    active = threading.Event()

    def handler(message):
        active.set()
        released.wait()

    adapter.listener("orders", redelivery_handling="")(handler)
    adapter.start()
    adapter.send("orders", "a pear")
    assert active.wait(60)
    assert not adapter.stop(0)
"""


def test_a_handler_that_does_not_return_is_an_error_of_its_test(tmp_path):
    output = run(tmp_path, _BLOCKED)
    assert "4 failed, 2 passed, 4 errors" in output
    assert "orders" in output.partition("its handler has not returned")[0].splitlines()[-1]


_BROKERS = """
import pytest

def test_a_message_is_kept(jms_adapter, jms_queue, jms_recorder, jms_broker):
    jms_adapter.listener(jms_queue)(jms_recorder)
    jms_adapter.send(jms_queue, "a pear")
    jms_recorder.assert_received("a pear")

@pytest.mark.parametrize("jms_broker", ["memory"], indirect=True)
def test_own_choice(jms_broker_url):
    assert "broker.db" not in jms_broker_url

class TestOverridden:
    @pytest.fixture
    def jms_broker_url(self):
        return "embedded://mine"

    def test_it_is_mine(self, jms_adapter):
        assert "mine" in repr(jms_adapter)

class TestOptions:
    @pytest.fixture
    def jms_adapter_options(self):
        return {"mbean_object_name": "com.example:type=Adapter", "hooks": []}

    def test_they_are_of_the_adapter(self, jms_adapter, jms_calls):
        assert jms_adapter.mbean_object_name == "com.example:type=Adapter"
        jms_adapter.send("orders", "a pear")
        jms_adapter.listener("orders")(lambda message: None)
        jms_calls.wait_for("orders")
"""


def test_tests_run_once_for_each_broker_that_is_named(tmp_path):
    output = run(tmp_path, _BROKERS, "-vv", "--jms-broker", "memory", "--jms-broker", "file")
    assert "6 passed" in output
    for expected in ("kept[memory] PASSED", "kept[file] PASSED", "own_choice[memory] PASSED", "is_mine PASSED"):
        assert expected in output


def test_the_settings_of_pytest_name_brokers(tmp_path):
    (tmp_path / "pytest.toml").write_text('[pytest]\njms_brokers = ["memory", "file"]\n')
    assert "6 passed" in run(tmp_path, _BROKERS)


def test_without_names_there_is_one_broker_in_memory(tmp_path):
    assert "4 passed" in run(tmp_path, _BROKERS)


_PARAMETERS = """
import pytest

@pytest.mark.parametrize(argnames="jms_broker", argvalues=["memory"], indirect=True)
def test_own_choice_by_keyword(jms_broker_url):
    assert "broker.db" not in jms_broker_url

@pytest.mark.parametrize("number , jms_broker", [(1, "memory")], indirect=["jms_broker"])
def test_own_choice_among_others(jms_broker_url, number):
    assert "broker.db" not in jms_broker_url

@pytest.mark.parametrize(["jms_broker"], [("memory",)], indirect=True)
def test_own_choice_in_a_list(jms_broker_url):
    assert "broker.db" not in jms_broker_url

@pytest.mark.parametrize("jms_brokers_wanted", [1])
def test_a_similar_name(jms_broker_url, jms_brokers_wanted):
    assert "broker.db" in jms_broker_url

@pytest.mark.parametrize("text", ["jms_broker"])
@pytest.mark.parametrize(("text_of_jms_broker", "number"), [("a", 1)])
def test_similar_names(jms_broker_url, text, text_of_jms_broker, number):
    assert "broker.db" in jms_broker_url
"""


def test_only_a_parameter_of_that_name_is_the_own_choice_of_a_test(tmp_path):
    assert "5 passed" in run(tmp_path, _PARAMETERS, "--jms-broker", "file")


_HARNESSES = """
import pytest
from jmsjca.testing.contract import Contract

@pytest.fixture
def harness():
    return 1

def test_that_needs_more(harness):
    pytest.skip("it needs a GPU")

class TestBroker(Contract):
    def test_with_a_reason_of_its_own(self, harness):
        pytest.skip("it needs a GPU")

    def test_with_a_capability(self, harness):
        harness.require_lack("atomic")
"""


def test_only_a_case_of_the_contract_must_not_be_skipped_for_a_reason_of_its_own(tmp_path):
    output = run(tmp_path, _HARNESSES)
    assert "1 failed, 2 skipped" in output
    assert "TestBroker::test_with_a_reason_of_its_own" in output
    assert "for the lack of a capability only, not so: Skipped: it needs a GPU" in output
