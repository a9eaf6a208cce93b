"""Events of a table, a folder and a mailbox: statuses, the archive, recovery, deletes, and duplicates."""

import imaplib
import os
import re
from contextlib import closing
from datetime import UTC, datetime
from email.message import EmailMessage

import pytest
import sqlalchemy as sa
from imap_server import ImapServer

from jmsjca import Queue
from jmsjca.connector import (
    BusinessObject,
    Connector,
    ConnectorConfig,
    ConnectorTerminatedError,
    DeliveryOutcome,
    EventRecord,
    FolderEventStore,
    MailboxEventStore,
    RecordStatus,
    ReturnCode,
)
from jmsjca.connector.data_handlers import data_handler
from jmsjca.connector.definitions import BusinessObjectDefinitions
from jmsjca.connector.sql_event_store import SqlEventStore
from jmsjca.errors import ConfigurationError, ConnectionLostError, NotSupportedError, StoreError

ACTIVE, GONE, READY = "active", "gone", "READY_FOR_POLL"
DEFINITIONS = BusinessObjectDefinitions(
    {
        "Customer": {
            "attributes": {
                "ID": {"type": "integer", "key": True},
                "State": {},
                "Line": {"type": "Line", "cardinality": "multiple"},
            },
            "inactive": {"State": GONE},
        },
        "Line": {"attributes": {"State": {}}, "inactive": {"State": GONE}},
    }
)


class Database:
    """An application with a table of customers and an event store."""

    def __init__(self, path):
        self.engine = sa.create_engine(f"sqlite:///{path}")
        self.customers = {}
        self.store = SqlEventStore(self.engine, self.retrieve)
        self.store.metadata.create_all(self.engine)

    def retrieve(self, record):
        found = self.customers.get(record.object_key)
        if isinstance(found, Exception):
            raise found
        return None if found is None else found.copy()

    def record(self, number, verb="Create", priority=0):
        key = f"ID={number}"
        self.customers.setdefault(key, BusinessObject("Customer", "", {"ID": number}))
        with self.engine.begin() as connection:
            self.store.add(connection, EventRecord(f"event-{number}", "Customer", verb, key, priority))

    def add(self, *numbers):
        for number in numbers:
            self.record(number)

    def statuses(self):
        query = "SELECT event_id, event_status FROM jmsjca_events"
        rows = sa.text(f"{query} UNION ALL {query}_archive")
        with self.engine.connect() as connection:
            return {row[0].removeprefix("event-"): RecordStatus(row[1]).name for row in connection.execute(rows)}


class Folder:
    """An application that writes files."""

    def __init__(self, path):
        self.path = path
        self.store = FolderEventStore(path, data_handler("application/json"))

    def add(self, *numbers):
        for number in numbers:
            body = f'{{"_type": "Customer", "ID": {number}}}'
            (self.path / "ready_for_poll" / f"{number}").write_text(body)

    def statuses(self):
        files = (file for file in self.path.rglob("*") if file.is_file() and not file.name.startswith("."))
        return {file.name: file.parent.name.upper() for file in files}


class Mailbox:
    """An application that sends mails."""

    def __init__(self, **script):
        self.server = ImapServer(**script)
        self.store = MailboxEventStore(self.connect, data_handler("application/json"))

    def connect(self):
        client = imaplib.IMAP4("127.0.0.1", self.server.port)
        client.login("hub", "secret")
        return client

    def mail(self, body, subtype="plain", message_id=None, attachment=None):
        mail = EmailMessage()
        mail["Subject"] = "An event"
        if message_id:
            mail["Message-ID"] = f"<{message_id}>"
        mail.set_content(body, subtype=subtype)
        if attachment:
            mail.add_attachment(attachment, subtype="xml", filename="a.xml")
        self.server.deliver("INBOX", bytes(mail))

    def add(self, *numbers):
        for number in numbers:
            self.mail(f'{{"_type": "Customer", "ID": {number}}}', message_id=f"event-{number}@shop")

    def statuses(self):
        return {
            re.search(rb"event-(\d+)@", mail)[1].decode(): name.removeprefix("events.").upper().replace("INBOX", READY)
            for name, mails in self.server.mailboxes.items()
            for mail in mails.values()
        }

    def close(self):
        self.store.close()
        self.server.close()


@pytest.fixture(params=["table", "folder", "mailbox", "mailbox without MOVE"])
def application(request, tmp_path):
    if request.param == "table":
        made = Database(tmp_path / "db")
        yield made
        made.engine.dispose()
    elif request.param == "folder":
        yield Folder(tmp_path)
    else:
        with closing(Mailbox(extensions="UIDPLUS" if "without" in request.param else "UIDPLUS MOVE")) as made:
            yield made


@pytest.fixture
def mailbox():
    with closing(Mailbox()) as made:
        yield made


@pytest.fixture
def database(tmp_path):
    made = Database(tmp_path / "db")
    yield made
    made.engine.dispose()


@pytest.fixture
def polling(url):
    """Create connectors for a store, which are closed afterwards."""
    created = []

    def create(store, collaboration, **fields):
        fields = {"connection_url": url, "poll_quantity": 9, "restart_retry_interval": 0, **fields}
        created.append(Connector(ConnectorConfig(**fields), collaboration, event_store=store))
        return created[-1]

    yield create
    for each in created:
        each.close()


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (None, "SUCCESS"),
        (DeliveryOutcome.NO_SUBSCRIPTION_FOUND, "UNSUBSCRIBED"),
        (DeliveryOutcome.FAIL, "ERROR_POSTING_EVENT"),
        (OSError, "ERROR_POSTING_EVENT"),
    ],
)
def test_each_outcome_has_its_status(application, polling, answer, status):
    application.add(1, 2)
    seen = []

    def collaboration(customer):
        seen.append(customer.get("ID"))
        if answer is OSError:
            raise OSError("the disk is full: \ud800")  # half of a character, as a value of an event may have
        return answer

    assert polling(application.store, collaboration).poll_for_events() is ReturnCode.SUCCEED
    assert (seen, application.statuses()) == ([1, 2], {"1": status, "2": status})


def test_a_poll_takes_the_quantity(application, polling):
    application.add(1, 2, 3)
    polling(application.store, lambda _: None, poll_quantity=2).poll_for_events()
    assert application.statuses() == {"1": "SUCCESS", "2": "SUCCESS", "3": "READY_FOR_POLL"}


def test_an_inactive_collaboration_keeps_the_record_in_progress(application, polling):
    application.add(1, 2)
    answers = [DeliveryOutcome.CONNECTOR_NOT_ACTIVE]
    connector = polling(application.store, lambda _: answers.pop() if answers else None)
    assert connector.poll_for_events() is ReturnCode.APPRESPONSETIMEOUT
    assert application.statuses() == {"1": "IN_PROGRESS", "2": "READY_FOR_POLL"}
    assert connector.poll_for_events() is ReturnCode.SUCCEED  # a restart makes it ready again
    assert application.statuses() == {"1": "SUCCESS", "2": "SUCCESS"}


def interrupt(_):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("mode", "seen"), [("Reprocess", [1, 2]), ("Ignore", [2]), ("LogError", [2]), ("FailOnStartup", None)]
)
def test_records_in_progress_at_the_start(application, polling, mode, seen):
    application.add(1)
    with pytest.raises(KeyboardInterrupt):
        polling(application.store, interrupt).poll_for_events()
    application.add(2)
    delivered = []
    connector = polling(application.store, lambda found: delivered.append(found.get("ID")), in_doubt_events=mode)
    if seen is None:
        with pytest.raises(ConnectorTerminatedError, match="event store"):
            connector.poll_for_events()
    else:
        connector.poll_for_events()
    assert delivered == (seen or [])
    assert application.statuses()["1"] == ("SUCCESS" if mode == "Reprocess" else "IN_PROGRESS")


def test_archived_events_can_be_resubmitted(application, polling):
    application.add(1, 2)
    polling(application.store, lambda found: DeliveryOutcome.FAIL if found.get("ID") == 1 else None).poll_for_events()
    assert application.store.resubmit(RecordStatus.ERROR_POSTING_EVENT, RecordStatus.UNSUBSCRIBED) == 1
    assert application.statuses() == {"1": "READY_FOR_POLL", "2": "SUCCESS"}
    polling(application.store, lambda _: None).poll_for_events()
    assert application.statuses() == {"1": "SUCCESS", "2": "SUCCESS"}


@pytest.mark.parametrize("eliminate", [False, True])
def test_a_queue_gets_the_events_with_their_ids(application, polling, messages, eliminate):
    application.add(1, 2)
    fields = {"duplicate_event_elimination": eliminate, "monitor_queue": "monitor"}
    polling(application.store, Queue("out"), **fields).poll_for_events()
    ids = [message.properties["ObjectEventId"] for message in messages("out")]
    assert [re.sub("@.*|event-|<", "", each) for each in ids] == ["1", "2"]


def test_an_event_that_was_delivered_before_the_crash_is_a_duplicate(application, polling, messages):
    class Crashing:
        """A store whose program ends before the status of an event is changed."""

        def __init__(self, store):
            self.claim, self.business_object, self.recover = store.claim, store.business_object, store.recover
            self.in_progress, self.resubmit = store.in_progress, store.resubmit

        def finish(self, *_):
            raise KeyboardInterrupt

    application.add(1, 2)
    fields = {"duplicate_event_elimination": True, "monitor_queue": "monitor"}
    with pytest.raises(KeyboardInterrupt):
        polling(Crashing(application.store), Queue("out"), **fields).poll_for_events()
    assert (application.statuses()["1"], len(messages("out"))) == ("IN_PROGRESS", 1)
    polling(application.store, Queue("out"), **fields).poll_for_events()
    assert (application.statuses(), len(messages("out"))) == ({"1": "SUCCESS", "2": "SUCCESS"}, 2)


def test_a_collaboration_is_needed(application, url):
    with pytest.raises(ConfigurationError, match="no collaboration"):
        Connector(ConnectorConfig(connection_url=url), event_store=application.store)


class TestTable:
    def test_the_order_is_that_of_priority_and_time(self, database, polling):
        database.record(1, priority=1)
        database.record(2, priority=0)
        seen = []
        polling(database.store, lambda found: seen.append(found.get("ID"))).poll_for_events()
        assert seen == [2, 1]

    def test_an_object_that_is_missing_or_unreadable_fails_its_event_alone(self, database, polling):
        database.add(1, 2)
        database.customers = {"ID=1": None, "ID=2": OSError("locked")}
        assert polling(database.store, print).poll_for_events() is ReturnCode.SUCCEED
        assert database.statuses() == {"1": "ERROR_OBJECT_NOT_FOUND", "2": "ERROR_PROCESSING_EVENT"}

    def test_a_physical_delete_has_its_keys_only(self, database, polling):
        database.record(1, verb="Delete")
        database.customers.clear()
        seen = []
        polling(database.store, seen.append, definitions=DEFINITIONS).poll_for_events()
        assert seen == [BusinessObject("Customer", "Delete", {"ID": 1})]

    def test_a_logical_delete_has_the_verb_delete_and_its_data(self, database, polling):
        deleted = BusinessObject(
            "Customer",
            "Update",
            {"ID": 1, "State": GONE, "Line": [BusinessObject("Line", "", {"State": each}) for each in (GONE, ACTIVE)]},
        )
        record = EventRecord.of(deleted, DEFINITIONS)
        database.customers[record.object_key] = deleted
        with database.engine.begin() as connection:
            database.store.add(connection, record)
        seen = []
        polling(database.store, seen.append, definitions=DEFINITIONS).poll_for_events()
        (found,) = seen
        assert (found.verb, found.get("State")) == ("Delete", GONE)
        assert [line.get("State") for line in found.get("Line")] == [ACTIVE]

    @pytest.mark.parametrize("name", ["O'Brien", "a;b", "a=b", " blank ", "'quoted'", "''", "", "two\nlines"])
    def test_a_physical_delete_has_its_keys_as_they_were(self, database, polling, name):
        keys = {"Name": name, "Share": 0.5, "Open": True}
        types = {"Name": "string", "Share": "float", "Open": "boolean"}
        attributes = {each: {"type": kind, "key": True} for each, kind in types.items()}
        definitions = BusinessObjectDefinitions({"Account": {"attributes": attributes}})
        with database.engine.begin() as connection:
            database.store.add(connection, EventRecord.of(BusinessObject("Account", "Delete", keys), definitions))
        seen = []
        polling(database.store, seen.append, definitions=definitions).poll_for_events()
        assert seen == [BusinessObject("Account", "Delete", keys)]

    def test_keys_without_definitions_keep_their_names(self, database, polling):
        database.record(1, verb="Delete")
        database.customers.clear()
        seen = []
        polling(database.store, seen.append).poll_for_events()
        assert seen == [BusinessObject("Customer", "Delete", {"ID": "1"})]

    def test_a_database_that_is_away_is_a_restart_and_loses_no_event(self, database, polling):
        database.add(1)
        seen = []
        connector = polling(database.store, seen.append)
        with database.engine.begin() as connection:
            connection.execute(sa.text("ALTER TABLE jmsjca_events RENAME TO away"))
        assert connector.poll_for_events() is ReturnCode.APPRESPONSETIMEOUT
        with database.engine.begin() as connection:
            connection.execute(sa.text("ALTER TABLE away RENAME TO jmsjca_events"))
        assert connector.poll_for_events() is ReturnCode.SUCCEED
        with database.engine.begin() as connection:
            connection.execute(sa.text("ALTER TABLE jmsjca_events RENAME TO away"))
        assert connector.poll_for_events() is ReturnCode.APPRESPONSETIMEOUT
        assert len(seen) == 1

    def test_connectors_share_a_table(self, database):
        other = SqlEventStore(database.engine, database.retrieve, connector_id="other")
        database.add(1)
        assert (list(other.claim(9)), other.recover(), other.resubmit(*RecordStatus)) == ([], 0, 0)
        assert len(database.store.claim(9)) == 1

    def test_the_time_is_kept(self, database):
        time = datetime(2026, 5, 1, 12, tzinfo=UTC)
        with database.engine.begin() as connection:
            database.store.add(connection, EventRecord("e", "Customer", "Create", event_time=time))
        assert database.store.claim(1)[0].event_time == time


def test_the_record_of_a_change():
    changed = BusinessObject("Customer", "Update", {"ID": 7, "State": ACTIVE})
    record = EventRecord.of(changed, DEFINITIONS, connector_id="hub")
    assert (record.object_verb, record.object_key, record.connector_id) == ("Update", "ID=7", "hub")
    assert EventRecord.of(changed, DEFINITIONS).event_id != record.event_id
    with pytest.raises(ConfigurationError, match="no definition"):
        EventRecord.of(BusinessObject("Unknown"), DEFINITIONS)


class TestFolder:
    def test_a_file_that_cannot_be_converted(self, tmp_path, polling):
        application = Folder(tmp_path)
        (tmp_path / "ready_for_poll" / "x").write_text("no JSON")
        polling(application.store, print).poll_for_events()
        assert application.statuses() == {"x": "ERROR_PROCESSING_EVENT"}
        assert "not valid JSON" in (tmp_path / "error_processing_event" / ".x.comment").read_text()

    def test_a_file_that_disappears(self, tmp_path):
        application = Folder(tmp_path)
        application.add(1)
        (record,) = application.store.claim(1)
        (tmp_path / "in_progress" / "1").unlink()
        assert application.store.business_object(record) is None
        application.store.finish(record, RecordStatus.ERROR_OBJECT_NOT_FOUND)

    def test_a_changed_file_is_another_event(self, tmp_path):
        application = Folder(tmp_path)
        ids = set()
        for time in (1, 2, 2):
            application.add(1)
            os.utime(tmp_path / "ready_for_poll" / "1", ns=(time, time))
            (record,) = application.store.claim(1)
            ids.add(record.event_id)
            application.store.finish(record, RecordStatus.SUCCESS)
        assert len(ids) == 2


class TestMailbox:
    def test_mails_are_taken_in_the_order_of_their_arrival(self, mailbox, polling):
        mailbox.add(3, 1, 2)
        seen = []
        polling(mailbox.store, lambda found: seen.append(found.get("ID")), poll_quantity=2).poll_for_events()
        assert seen == [3, 1]
        assert mailbox.statuses() == {"3": "SUCCESS", "1": "SUCCESS", "2": "READY_FOR_POLL"}

    def test_the_event_id_is_that_of_the_mail_and_stays_when_it_is_recovered(self, mailbox):
        mailbox.add(1)
        mailbox.mail("{}")
        first = [record.event_id for record in mailbox.store.claim(9)]
        assert mailbox.store.recover() == 2
        assert [record.event_id for record in mailbox.store.claim(9)] == first
        assert first[0] == "<event-1@shop>"
        assert first[1].startswith("sha256:")

    def test_an_attachment_takes_precedence_and_names_its_data_handler(self, mailbox):
        store = MailboxEventStore(mailbox.connect)
        mailbox.mail("Dear hub,", attachment="<Customer verb='Update'><ID>7</ID></Customer>")
        (record,) = store.claim(1)
        assert store.business_object(record) == BusinessObject("Customer", "Update", {"ID": "7"})
        store.close()

    @pytest.mark.parametrize(
        ("subtype", "reason"), [("plain", "No data handler for MIME type 'text/plain'"), ("xml", "DataHandlerError")]
    )
    def test_a_mail_that_cannot_be_converted(self, mailbox, polling, caplog, subtype, reason):
        mailbox.mail("Dear hub,", subtype, message_id="event-1@shop")
        with closing(MailboxEventStore(mailbox.connect)) as store:
            polling(store, print).poll_for_events()
        assert mailbox.statuses() == {"1": "ERROR_PROCESSING_EVENT"}
        assert reason in caplog.text

    @pytest.mark.parametrize("command", ["SELECT", "SEARCH", "HEADER", "PEEK[])", "MOVE", "MOVE 3"])
    @pytest.mark.parametrize("moment", ["before", "after"])
    def test_a_lost_connection_is_a_restart_and_loses_no_event(self, mailbox, polling, messages, command, moment):
        mailbox.add(1, 2)
        mailbox.server.cut = (moment, command)
        fields = {"duplicate_event_elimination": True, "monitor_queue": "monitor"}
        connector = polling(mailbox.store, Queue("out"), **fields)
        assert connector.poll_for_events() is ReturnCode.APPRESPONSETIMEOUT
        assert connector.poll_for_events() is ReturnCode.SUCCEED
        assert mailbox.statuses() == {"1": "SUCCESS", "2": "SUCCESS"}
        assert len(messages("out")) == 2

    def test_a_command_that_is_refused_is_an_error_with_its_reason(self, mailbox):
        mailbox.store.in_progress()
        del mailbox.server.mailboxes["events.in_progress"]
        with pytest.raises(StoreError, match=r"select events\.in_progress: NO .*no such mailbox"):
            mailbox.store.in_progress()

    def test_a_server_without_uidplus_is_refused(self):
        with closing(Mailbox(extensions="MOVE")) as application, pytest.raises(NotSupportedError, match="UIDPLUS"):
            application.store.claim(1)

    def test_a_server_that_is_away_is_a_lost_connection(self, mailbox):
        mailbox.server.close()
        with pytest.raises(ConnectionLostError, match="mail server"):
            mailbox.store.claim(1)

    def test_a_mail_that_another_client_removed(self, mailbox):
        mailbox.add(1)
        (record,) = mailbox.store.claim(1)
        mailbox.server.mailboxes["events.in_progress"].clear()
        assert mailbox.store.business_object(record) is None
        mailbox.store.finish(record, RecordStatus.ERROR_OBJECT_NOT_FOUND)
