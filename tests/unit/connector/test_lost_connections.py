"""Connections that are lost while events are delivered to a queue, and errors of the broker: the events are kept."""

import sqlite3
from contextlib import ExitStack, closing, contextmanager

import pytest

from jmsjca import Outcome, Queue, ResourceAdapter
from jmsjca.config import Limits
from jmsjca.connector import Activities, BusinessObject, Connector, ConnectorConfig, FolderEventStore, ReturnCode
from jmsjca.connector.data_handlers import data_handler
from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.outbound.session import Session
from jmsjca.testing.faults import FaultInjection

ORDER = '{"_type": "Order", "id": %d}'


@pytest.fixture
def faults(monkeypatch):
    return FaultInjection(monkeypatch)


@pytest.fixture
def store(tmp_path):
    made = FolderEventStore(tmp_path, data_handler("application/json"))
    for number in range(1, 5):
        (tmp_path / "ready_for_poll" / f"{number}").write_text(ORDER % number)
    return made


@pytest.fixture
def statuses(tmp_path):
    """Return the statuses of the events of the store."""

    def read():
        return {file.name: file.parent.name for file in tmp_path.rglob("[0-9]")}

    return read


@pytest.fixture
def polling(url):
    """Create connectors, which are closed afterwards."""
    created = []

    def create(collaboration, event_store=None, handler=None, **fields):
        config = ConnectorConfig(connection_url=url, **fields)
        created.append(Connector(config, collaboration, event_store=event_store, data_handler=handler))
        return created[-1]

    yield create
    for each in created:
        each.close()


@pytest.fixture(params=[False, True])
def eliminating(request, polling, store):
    """A connector with and without duplicate elimination."""
    fields = {"duplicate_event_elimination": request.param, "monitor_queue": "monitor", "poll_quantity": 2}
    return polling(Queue("hub"), store, **fields)


def test_a_stored_event_is_kept_while_the_broker_is_down(messages, eliminating, statuses, faults):
    assert eliminating.poll_for_events() is ReturnCode.SUCCEED
    with faults.broker_down():
        assert eliminating.poll_for_events() is ReturnCode.APPRESPONSETIMEOUT
        assert eliminating.poll_for_events() is ReturnCode.APPRESPONSETIMEOUT
    assert statuses() == {"1": "success", "2": "success", "3": "in_progress", "4": "ready_for_poll"}
    assert eliminating.poll_for_events() is ReturnCode.SUCCEED
    assert set(statuses().values()) == {"success"}
    assert len(messages("hub")) == 4


def test_a_stored_event_survives_a_restart_of_the_broker(polling, store, statuses, faults):
    connector = polling(Queue("hub"), store, poll_quantity=2)
    connector.poll_for_events()
    faults.restart_broker()
    codes = [connector.poll_for_events() for _ in range(2)]
    assert codes == [ReturnCode.APPRESPONSETIMEOUT, ReturnCode.SUCCEED]
    assert set(statuses().values()) == {"success"}


@pytest.fixture
def gone(session):
    """A destination that the broker refuses."""
    made = session.create_temporary_queue()
    made.delete()
    return made


def test_a_destination_that_the_broker_refuses_keeps_the_stored_event(polling, store, statuses, gone):
    assert polling(gone, store).poll_for_events() is ReturnCode.APPRESPONSETIMEOUT
    assert statuses()["1"] == "in_progress"


def test_a_destination_that_the_broker_refuses_keeps_the_message(polling, session, messages, gone, caplog):
    session.create_producer(Queue("in")).send(ORDER % 1)
    connector = polling(gone, input_destination="in", error_destination="errors")
    assert connector.poll_for_events() is ReturnCode.APPRESPONSETIMEOUT
    assert (len(messages("in")), messages("errors")) == (1, [])
    assert f"{gone} is not reached" in caplog.text


@pytest.mark.parametrize("error", [ConnectionLostError, JMSError])
def test_an_error_of_the_broker_that_a_function_uses_fails_the_event(polling, store, statuses, error):
    def collaboration(_):
        raise error("the other broker is away")

    assert polling(collaboration, store, poll_quantity=9).poll_for_events() is ReturnCode.SUCCEED
    assert set(statuses().values()) == {"error_posting_event"}


class TooLarge:
    """A data handler of business objects that no message can hold."""

    def __init__(self, content):
        self.content = content

    def to_business_object(self, content, **_):
        return BusinessObject("Order", "Create", {"body": content})

    def to_content(self, _):
        return self.content


def test_an_event_that_no_message_can_hold_fails_and_blocks_no_other(polling, store, statuses, session, messages):
    handler = TooLarge(bytes(100 * 1024 * 1024 + 1))
    connector = polling(Queue("hub"), store, handler, input_destination="in", error_destination="errors")
    session.create_producer(Queue("in")).send(ORDER % 1)
    assert connector.poll_for_events() is ReturnCode.SUCCEED
    assert (statuses()["1"], len(messages("errors"))) == ("error_posting_event", 1)


def test_the_log_says_nothing_of_a_message_that_is_kept(polling, session, messages, faults, caplog):
    class Restarting(TooLarge):
        """A data handler during which the broker restarts, and which then fails."""

        def to_business_object(self, content, **_):
            faults.restart_broker()
            raise ValueError("no order")

    session.create_producer(Queue("in")).send(ORDER % 1)
    connector = polling(Queue("hub"), handler=Restarting(""), input_destination="in")
    assert connector.poll_for_events() is ReturnCode.APPRESPONSETIMEOUT
    assert len(messages("in")) == 1
    assert "discarded" not in caplog.text


class Disk:
    """The file of a broker, which another process can keep locked."""

    def __init__(self, path):
        self.url = f"embedded://{path}"
        self.path = path

    @contextmanager
    def locked(self):
        with closing(sqlite3.connect(self.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield


@pytest.fixture
def disk(tmp_path):
    return Disk(tmp_path / "broker.db")


@pytest.fixture
def activities(disk):
    with ResourceAdapter(disk.url, limits=Limits(lock_timeout=0)) as adapter, Activities(adapter) as activities:
        yield activities


@pytest.mark.parametrize("action", ["JBXCommit", "JBXRollback"])
def test_a_settlement_that_fails_is_rolled_back(disk, activities, action):
    activities.send("orders", "a pear")
    polled = activities.poll("orders", transacted=True)
    with disk.locked():
        settlement = activities.acknowledge(acknowledge_id=polled.acknowledge_id, action=action)
    assert settlement.outcome is Outcome.ROLLED_BACK


def test_messages_are_returned_although_the_connection_cannot_be_closed(disk, activities, monkeypatch):
    activities.send("orders", "a pear")
    commit = Session.commit
    with ExitStack() as stack:
        monkeypatch.setattr(Session, "commit", lambda session: commit(session) or stack.enter_context(disk.locked()))
        polled = activities.poll("orders")
    assert [each.payload for each in polled.responses] == ["a pear"]
