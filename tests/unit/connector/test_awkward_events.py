"""Events with awkward names, ids and errors: each has its outcome once, and none blocks the others."""

import math
import os
import tempfile
from pathlib import Path

import pytest
import sqlalchemy as sa

from jmsjca import ConnectionFactory, Limits, Queue
from jmsjca.connector import (
    BusinessObject,
    Connector,
    ConnectorConfig,
    EventRecord,
    FolderEventStore,
    RecordStatus,
    ReturnCode,
    ReturnStatus,
)
from jmsjca.connector.data_handlers import data_handler
from jmsjca.connector.sql_event_store import SqlEventStore
from jmsjca.errors import StoreError

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  # a file system with times of any year
ORDER = '{"_type": "Order", "id": %d}'


class UnspeakableError(Exception):
    """An error without a text."""

    def __str__(self):
        raise RuntimeError("no text")


class Failing(list):
    """A collaboration that fails for the first of two events."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def __call__(self, order):
        self.append(order.get("id"))
        if order.get("id") == 1:
            raise self.error


class Folder:
    """An application that writes files."""

    def __init__(self, path):
        self.path = path
        self.store = FolderEventStore(path, data_handler("application/json"))

    def add(self, *names):
        for number, name in enumerate(names, 1):
            (self.path / "ready_for_poll" / os.fsdecode(name)).write_text(ORDER % number)

    def statuses(self):
        """Return the statuses of the files by their first letters."""
        files = [file for file in self.path.rglob("*") if file.is_file() and not file.name.startswith(".")]
        return {file.name[0]: file.parent.name for file in files}

    def comment(self):
        (file,) = (self.path / "error_posting_event").glob(".*.comment")
        return file.read_text()


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


@pytest.fixture
def polling(url):
    """Create connectors for a store, which are closed afterwards."""
    created = []

    def create(store, collaboration, **fields):
        config = ConnectorConfig(connection_url=url, poll_quantity=9, **fields)
        created.append(Connector(config, collaboration, event_store=store))
        return created[-1]

    yield create
    for each in created:
        each.close()


@pytest.mark.parametrize("name", ["a" * 246, "a" * 247, "a" * 255, "a" + "ä" * 127])
def test_a_long_name_of_a_file_that_fails_blocks_no_other(folder, polling, name):
    folder.add(name, "b")
    orders = Failing(ValueError("no stock"))
    assert polling(folder.store, orders).poll_for_events() is ReturnCode.SUCCEED
    assert (orders, folder.statuses()) == ([1, 2], {"a": "error_posting_event", "b": "success"})
    assert "no stock" in folder.comment()


@pytest.mark.parametrize("collaboration", [Queue("hub"), lambda _: None])
def test_a_name_that_is_no_valid_text(folder, polling, messages, collaboration):
    folder.add(b"caf\xe9", "b")
    fields = {"duplicate_event_elimination": True, "monitor_queue": "monitor"}
    assert polling(folder.store, collaboration, **fields).poll_for_events() is ReturnCode.SUCCEED
    assert folder.statuses() == {"c": "success", "b": "success"}
    if isinstance(collaboration, Queue):
        assert messages("hub")[1].properties["ObjectEventId"].startswith(r"caf\udce9@")


def retrieve(record):
    if record.object_key == "unreadable":
        raise UnspeakableError
    return BusinessObject("Customer", "", {"ID": 7})


@pytest.fixture
def table():
    engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
    made = SqlEventStore(engine, retrieve)
    made.metadata.create_all(engine)
    yield engine, made
    engine.dispose()


def test_an_id_that_is_used_again_replaces_the_first_event_in_the_archive(polling, table):
    engine, store = table
    seen = []
    connector = polling(store, seen.append)
    for verb in ("Create", "Update"):
        with engine.begin() as connection:
            store.add(connection, EventRecord("customer-7", "Customer", verb, "ID=7"))
        assert connector.poll_for_events() is ReturnCode.SUCCEED
    assert connector.poll_for_events() is ReturnCode.SUCCEED
    assert [customer.verb for customer in seen] == ["Create", "Update"]
    assert store.resubmit(RecordStatus.SUCCESS) == 1
    assert store.claim(9)[0].object_verb == "Update"


@pytest.mark.parametrize("time", ["yesterday", "", "2026-13-45 00:00:00", 17, 1.5, math.inf, b"\0"])
def test_a_row_whose_time_is_none_is_delivered_with_a_warning_and_blocks_no_other(polling, table, caplog, time):
    engine, store = table
    with engine.begin() as connection:
        for each in ("customer-7", "customer-8"):
            store.add(connection, EventRecord(each, "Customer", "Create", "ID=7"))
        change = sa.text("UPDATE jmsjca_events SET event_time = :time WHERE event_id = 'customer-7'")
        connection.execute(change, {"time": time})
    seen = []
    connector = polling(store, seen.append)
    assert connector.poll_for_events() is ReturnCode.SUCCEED
    assert {customer.object_event_id for customer in seen} == {"customer-7", "customer-8"}
    assert [record.getMessage()[:22] for record in caplog.records] == ["The event 'customer-7'"]
    assert store.resubmit(RecordStatus.SUCCESS) == 2
    assert connector.poll_for_events() is ReturnCode.SUCCEED
    assert (len(seen), len(caplog.records)) == (4, 1)  # the archive has a time


def test_an_archived_event_whose_id_waits_again_is_not_resubmitted(polling, table):
    engine, store = table
    for each in ("customer-7", "customer-8"):
        with engine.begin() as connection:
            store.add(connection, EventRecord(each, "Customer", "Create", "ID=7"))
    polling(store, lambda _: None).poll_for_events()
    with engine.begin() as connection:
        store.add(connection, EventRecord("customer-7", "Customer", "Update", "ID=7"))
    with pytest.raises(StoreError, match=r"'customer-7' waits already.*Nothing was changed") as caught:
        store.resubmit(RecordStatus.SUCCESS)
    assert isinstance(caught.value.__cause__, sa.exc.IntegrityError)
    assert polling(store, lambda _: None).poll_for_events() is ReturnCode.SUCCEED
    assert store.resubmit(RecordStatus.SUCCESS) == 2


def test_an_event_that_is_archived_during_a_resubmission_is_kept(tmp_path):
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'db'}", poolclass=sa.NullPool)
    store = SqlEventStore(engine, retrieve)
    store.metadata.create_all(engine)
    for each in ("customer-7", "customer-8"):
        with engine.begin() as connection:
            store.add(connection, EventRecord(each, "Customer", "Create", "ID=7"))
    first, second = store.claim(2)
    store.finish(first, RecordStatus.ERROR_POSTING_EVENT)
    waiting = [second]

    @sa.event.listens_for(engine, "before_cursor_execute")
    def archive_meanwhile(_connection, _cursor, statement, *_):
        if statement.startswith("DELETE FROM jmsjca_events_archive") and waiting:
            store.finish(waiting.pop(), RecordStatus.ERROR_POSTING_EVENT)  # by the connector, in its process

    assert store.resubmit(RecordStatus.ERROR_POSTING_EVENT) == 1
    assert [record.event_id for record in store.claim(9)] == ["customer-7"]
    assert store.resubmit(RecordStatus.ERROR_POSTING_EVENT) == 1
    assert [record.event_id for record in store.claim(9)] == ["customer-8"]


def test_an_archived_file_whose_name_waits_again_is_not_resubmitted(folder, polling):
    folder.add("a", "b")
    polling(folder.store, lambda _: None).poll_for_events()
    folder.add("b")
    with pytest.raises(StoreError, match=r"'b' waits already.*Nothing was changed"):
        folder.store.resubmit(RecordStatus.SUCCESS)
    assert sorted(each.name for each in (folder.path / "success").iterdir()) == ["a", "b"]
    assert polling(folder.store, lambda _: None).poll_for_events() is ReturnCode.SUCCEED
    assert folder.store.resubmit(RecordStatus.SUCCESS) == 2


def test_a_file_in_progress_is_not_replaced_by_one_with_its_name(folder, caplog):
    (folder.path / "ready_for_poll" / "a").write_text("another event")
    (record,) = folder.store.claim(1)
    folder.add("a")
    (folder.path / "ready_for_poll" / "b").touch()
    assert [each.object_key for each in folder.store.claim(9)] == ["b"]
    assert folder.store.claim(9) == []
    assert caplog.text.count("'a' has the name of a file in progress") == 1
    assert "Order" in (folder.path / "ready_for_poll" / "a").read_text()
    assert "another" in (folder.path / "in_progress" / "a").read_text()
    folder.store.finish(record, RecordStatus.SUCCESS)
    assert [each.object_key for each in folder.store.claim(1)] == ["a"]
    folder.add("a")
    assert folder.store.claim(9) == []
    assert caplog.text.count("'a' has the name of a file in progress") == 2


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_file_in_progress_whose_name_waits_again_is_recovered_as_the_others_are(folder, polling, is_folder):
    folder.add("a", "b")
    first = folder.store.claim(2)
    if is_folder:
        (folder.path / "ready_for_poll" / "a").mkdir()
    else:
        (folder.path / "ready_for_poll" / "a").write_text(ORDER % 3)
    assert folder.store.recover() == 2
    assert folder.store.claim(2) == first
    seen = []
    assert polling(folder.store, lambda order: seen.append(order.get("id"))).poll_for_events() is ReturnCode.SUCCEED
    assert (seen, folder.statuses()) == ([1, 2] if is_folder else [1, 3, 2], {"a": "success", "b": "success"})


def test_a_folder_among_the_files_blocks_none_of_them(folder, polling):
    for status in ("ready_for_poll", "error_processing_event"):
        (folder.path / status / "a").mkdir()
        (folder.path / status / "a" / "x").touch()
    folder.add("b")
    assert polling(folder.store, lambda _: None).poll_for_events() is ReturnCode.SUCCEED
    assert (folder.path / "success" / "b").exists()
    assert (folder.path / "ready_for_poll" / "a" / "x").exists()


def test_a_folder_with_the_name_of_an_event_blocks_none(folder, polling):
    folder.add("a", "b")
    (folder.path / "success" / "a").mkdir()
    orders = []
    connector = polling(folder.store, lambda order: orders.append(order.get("id")))
    assert connector.poll_for_events() is ReturnCode.SUCCEED
    assert (orders, folder.statuses()) == ([1, 2], {"a": "success", "b": "success"})
    assert folder.store.resubmit(RecordStatus.SUCCESS) == 2


@pytest.mark.skipif(not SHARED_MEMORY.is_dir(), reason="The other file systems may have no such times.")
@pytest.mark.parametrize("time", [-(10**11), 10**12])
def test_a_file_of_a_time_that_is_no_date_blocks_none(polling, time):
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as path:
        folder = Folder(Path(path))
        folder.add("a", "b")
        os.utime(folder.path / "ready_for_poll" / "a", (time, time))
        assert polling(folder.store, lambda _: None).poll_for_events() is ReturnCode.SUCCEED
        assert folder.statuses() == {"a": "success", "b": "success"}


@pytest.mark.parametrize("error", [UnspeakableError(), ValueError("a\0\ud800")])
def test_an_error_without_a_text_fails_its_stored_event_alone(folder, polling, error):
    folder.add("a", "b")
    orders = Failing(error)
    assert polling(folder.store, orders).poll_for_events() is ReturnCode.SUCCEED
    assert (orders, folder.statuses()) == ([1, 2], {"a": "error_posting_event", "b": "success"})
    assert folder.comment()


def test_a_stored_event_that_cannot_be_read_and_whose_error_has_no_text(polling, table):
    engine, store = table
    with engine.begin() as connection:
        store.add(connection, EventRecord("customer-7", "Customer", "Create", "unreadable"))
    assert polling(store, print).poll_for_events() is ReturnCode.SUCCEED
    assert store.resubmit(RecordStatus.ERROR_PROCESSING_EVENT) == 1


def test_a_held_message_whose_origin_has_no_name(url, session, messages):
    message = session.create_text_message(ORDER % 1, properties={"_JMSJCA_OriginalDestinationName": ""})
    session.create_producer(Queue("held")).send(message)
    orders = []
    config = ConnectorConfig(connection_url=url, input_destination="in", in_progress_destination="held")
    with Connector(config, orders.append) as connector:
        assert connector.poll_for_events() is ReturnCode.SUCCEED
    assert (len(orders), messages("held")) == (1, [])


@pytest.mark.parametrize("target", ["errors", None])
def test_an_error_of_a_message_without_a_text(url, session, messages, target):
    for number in (1, 2):
        session.create_producer(Queue("in")).send(ORDER % number)
    orders = Failing(UnspeakableError())
    config = ConnectorConfig(connection_url=url, input_destination="in", poll_quantity=2, error_destination=target)
    with Connector(config, orders) as connector:
        assert connector.poll_for_events() is ReturnCode.SUCCEED
    assert (orders, messages("in"), len(messages("errors"))) == ([1, 2], [], 1 if target else 0)


class Unconvertible:
    """A data handler whose errors have no text."""

    def to_business_object(self, content, **_):
        raise UnspeakableError

    def to_content(self, _):
        raise UnspeakableError


def test_a_fault_without_a_text(url, session, messages):
    session.create_producer(Queue("HUB/SOURCEQUEUE")).send(ORDER % 1)
    config = ConnectorConfig(connection_url=url, connector_name="HUB", container_managed_events=True)
    with Connector(config, data_handler=Unconvertible()) as connector:
        assert connector.transfer_events() is ReturnCode.SUCCEED
    (fault,) = messages("HUB/FAULTQUEUE")
    assert "RuntimeError" in fault.properties["FaultDescription"]


def test_a_report_of_an_error_without_a_text(url, session, messages):
    request = session.create_text_message(ORDER % 1, properties={"JMS_IBM_Report_NAN": 1})
    request.reply_to = Queue("reports")
    session.create_producer(Queue("in")).send(request)
    rule = {"Order_Create": "CollaborationName=orders"}
    config = ConnectorConfig(connection_url=url, input_destination="in", configuration_meta_object=rule)
    with Connector(config, print, collaborations={"orders": Failing(UnspeakableError())}) as connector:
        assert connector.poll_for_events() is ReturnCode.SUCCEED
    (report,) = messages("reports")
    assert "RuntimeError" in report.body


class Unsendable(Unconvertible):
    """A data handler that raises an error."""

    def __init__(self, error):
        self.error = error

    def to_content(self, _):
        raise self.error


@pytest.mark.parametrize(
    ("error", "text"),
    [(UnspeakableError(), "RuntimeError"), (ValueError(), "ValueError"), (ValueError("a\ud800"), r"a\ud800")],
)
def test_a_request_whose_error_has_no_text(url, caplog, error, text):
    rule = {"Order_Create": "OutputDestination=orders"}
    status = ReturnStatus()
    config = ConnectorConfig(connection_url=url, configuration_meta_object=rule)
    with Connector(config, data_handler=Unsendable(error)) as connector:
        assert connector.do_verb_for(BusinessObject("Order", "Create"), status) is ReturnCode.FAIL
    assert text in status.text
    assert text in caplog.text


def test_a_message_that_only_its_sender_may_send_is_copied_and_blocks_no_other(url, connector):
    size = Limits().message_bytes + 1
    factory = ConnectionFactory(url, limits=Limits(message_bytes=2 * size))
    orders = []
    with factory.create_connection() as connection, ConnectionFactory(f"{url}-vault").create_connection() as vault:
        session = connection.create_session()
        producer = session.create_producer(Queue("in"))
        producer.send(session.create_text_message((ORDER % 1).ljust(size)))
        producer.send(session.create_text_message(ORDER % 2))
        fields = {
            "poll_quantity": 2,
            "in_progress_destination": "held",
            "archive_destination": "archive",
            "archival_connection_url": f"{url}-vault",
        }
        assert connector(lambda order: orders.append(order.get("id")), **fields).poll_for_events() is ReturnCode.SUCCEED
        with vault.create_session().create_browser(Queue("archive")) as archived:
            assert [len(message.body) for message in archived] == [size, len(ORDER % 2)]
    assert orders == [1, 2]


QUOTED = "hunter2"


@pytest.mark.parametrize(
    "mime", ["application/json", "text/xml", "text/delimited", "text/namevalue", "text/fixedwidth"]
)
def test_no_record_has_a_part_of_a_body_that_cannot_be_converted(connector, session, messages, caplog, mime):
    session.create_producer(Queue("in")).send(QUOTED)
    definitions = {"Order": {"attributes": {"item": {"width": 5}}}}
    broken = connector(
        print,
        data_handler_mime_type=mime,
        definitions=definitions,
        error_destination="errors",
        unsubscribed_destination="errors",
    )
    assert broken.poll_for_events() is ReturnCode.SUCCEED
    (copy,) = messages("errors")
    assert QUOTED in copy.properties["_JMSJCA_ExceptionMessage"]
    assert "whose text is not logged" in caplog.text
    assert QUOTED not in caplog.text


def test_no_record_has_a_value_of_a_request(url, caplog):
    config = ConnectorConfig(connection_url=url, configuration_meta_object={"Order_Create": "OutputDestination=orders"})
    status = ReturnStatus()
    with Connector(config) as connector:
        order = BusinessObject("Order", "Create", {"item": [[QUOTED]]})
        assert connector.do_verb_for(order, status) is ReturnCode.FAIL
    assert "whose text is not logged" in caplog.text
    assert QUOTED not in caplog.text
