"""What the kill loop brought to light, each in its smallest form."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from jmsjca import ConnectionFactory, Queue, Session
from jmsjca.errors import ConnectionLostError, TransactionRolledBackError

QUEUE = Queue("found")


def _send(session: Session, count: int) -> None:
    producer = session.create_producer(QUEUE)
    for n in range(count):
        producer.send(session.create_text_message(str(n)))
    session.commit()


def _let_another_process_open(url: str) -> None:
    code = f"from jmsjca import ConnectionFactory; ConnectionFactory({url!r}).create_connection().close()"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_rollback_of_nothing_keeps_what_was_taken_ahead(tmp_path: Path) -> None:
    factory = ConnectionFactory(f"embedded://{tmp_path}/broker.db")
    with factory.create_connection() as connection, connection.create_session(transacted=True) as session:
        _send(session, 3)
        consumer = session.create_consumer(QUEUE)
        bodies = []
        while (message := consumer.receive(timeout=0)) is not None:
            bodies.append(message.body)
            session.commit()
            session.rollback()
        assert bodies == ["0", "1", "2"]


def test_closing_ends_the_thread_that_waits_for_other_processes(tmp_path: Path) -> None:
    with ConnectionFactory(f"embedded://{tmp_path}/broker.db").create_connection() as connection:
        assert connection.create_session().create_consumer(QUEUE).receive(timeout=0.01) is None
    assert not [thread for thread in threading.enumerate() if thread.name == "jmsjca-wakeup"]


def test_who_was_taken_for_dead_is_told_and_holds_nothing(tmp_path: Path) -> None:
    url = f"embedded://{tmp_path}/broker.db"
    factory = ConnectionFactory(url)
    with factory.create_connection() as connection, connection.create_session(transacted=True) as session:
        _send(session, 30)
        consumer = session.create_consumer(QUEUE)
        assert consumer.receive(timeout=0) is not None
        for lock in (tmp_path / "broker.db-owners").iterdir():
            lock.unlink()
        _let_another_process_open(url)
        with pytest.raises(TransactionRolledBackError):
            session.commit()
        with pytest.raises(ConnectionLostError):
            consumer.receive(timeout=0)
        with factory.create_connection() as again:
            session_again = again.create_session(transacted=True)
            message = session_again.create_consumer(QUEUE).receive(timeout=0)
            assert message is not None
            assert (message.body, message.delivery_count) == ("0", 2)


def test_a_refused_commit_forgets_what_was_taken_ahead(tmp_path: Path) -> None:
    url = f"embedded://{tmp_path}/broker.db"
    with ConnectionFactory(url).create_connection() as connection:
        session = connection.create_session(transacted=True)
        _send(session, 3)
        consumer = session.create_consumer(QUEUE)
        store = connection._provider_connection._store
        for _ in range(3):
            message = consumer.receive(timeout=0)
            assert message is not None
            assert message.body == "0"
            with store.write() as cursor:  # as if somebody else had it
                cursor.execute("UPDATE message SET token = -1 WHERE id = (SELECT min(id) FROM message)")
            with pytest.raises(TransactionRolledBackError):
                session.commit()
            with store.write() as cursor:
                cursor.execute("UPDATE message SET owner = NULL, token = NULL")
