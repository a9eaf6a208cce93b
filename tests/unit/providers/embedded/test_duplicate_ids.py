"""The ids that a destination remembers: at least as many as configured, at most half more, and only committed ones."""

import uuid
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca import Limits, Queue, TextMessage, Topic
from jmsjca.destinations import Destination
from jmsjca.errors import InvalidDestinationError, TransactionRolledBackError
from jmsjca.providers.embedded.connection import EmbeddedConnection
from jmsjca.providers.embedded.store import queues
from jmsjca.providers.embedded.store.store import drop_memory_store
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.testing.contract.harness import prepare

QUEUE, OTHER = Queue("q"), Queue("other")


def remembering(url: str, history: int) -> "closing[EmbeddedConnection]":
    return closing(connect(ConnectionSettings(url, limits=Limits(duplicate_history=history))))  # type: ignore[arg-type]


def send(connection: EmbeddedConnection, *keys: str, to: Destination = QUEUE) -> int:
    """Send one message for each id in one unit, and return how many came."""
    before = connection.admin().activity(to).added
    unit = connection.unit()
    for key in keys:
        unit.send(prepare(TextMessage(key, properties={"_AMQ_DUPL_ID": key}), to), to)
    unit.commit()
    return connection.admin().activity(to).added - before


def kept(connection: EmbeddedConnection) -> set[str]:
    with connection._store.read() as cursor:
        return {key for (key,) in cursor.execute("SELECT key FROM duplicate")}


units = st.lists(st.lists(st.integers(0, 60).map(str), min_size=1, max_size=12), min_size=1, max_size=25)


@given(units, st.integers(1, 20))
def test_the_last_ids_are_remembered(given_units, history):
    """A message is dropped if its id is one of the last that were recorded, and not if it was never sent."""
    url = f"embedded://test-{uuid.uuid4().hex}"
    recorded: list[str] = []
    with remembering(url, history) as connection:
        for keys in given_units:
            for key in keys:
                came = send(connection, key)
                assert came == 1 or key in recorded
                assert came == 0 or key not in recorded[-history:]
                if came:
                    recorded.append(key)
    drop_memory_store(url.removeprefix("embedded://"))


@given(units)
def test_a_unit_is_as_its_messages_one_by_one(given_units):
    urls = [f"embedded://test-{uuid.uuid4().hex}" for _ in range(2)]
    with remembering(urls[0], 10) as together, remembering(urls[1], 10) as alone:
        for keys in given_units:
            assert send(together, *keys) == sum(send(alone, key) for key in keys)
        assert kept(together) == kept(alone)
    for url in urls:
        drop_memory_store(url.removeprefix("embedded://"))


@pytest.mark.parametrize("history", [0, 1, 2, 10, 11])
def test_what_is_kept_is_bounded(jms_broker_url, history):
    with remembering(jms_broker_url, history) as connection:
        for number in range(100):
            send(connection, str(number))
            last = {str(n) for n in range(max(number - history + 1, 0), number + 1)}
            assert last <= kept(connection) or not history
            assert len(kept(connection)) <= max(3 * -(-history // 2), 2)


def test_senders_with_different_limits(jms_broker_url):
    """Each keeps at least as many as it must itself, whatever the other one began."""
    with remembering(jms_broker_url, 4) as few, remembering(jms_broker_url, 40) as many:
        for number in range(40):
            send(few if number % 2 else many, f"both-{number}")
        for number in range(40):
            send(many, f"many-{number}")
        assert send(many, *(f"many-{number}" for number in range(40))) == 0


def test_destinations_have_ids_of_their_own(jms_broker_url):
    with remembering(jms_broker_url, 4) as connection:
        assert send(connection, "a") == 1
        for number in range(20):
            send(connection, str(number), to=OTHER)
        assert (send(connection, "a"), send(connection, "a", to=OTHER)) == (0, 1)


def test_a_removed_queue_leaves_the_ids_of_the_others(jms_broker_url):
    with remembering(jms_broker_url, 4) as connection:
        send(connection, *"abcdef")
        send(connection, *"abcdef", to=OTHER)
        connection.remove(QUEUE)
        assert (send(connection, *"ef", to=OTHER), send(connection, *"ef")) == (0, 2)


def test_ids_of_a_unit_that_was_rolled_back_are_not_remembered(jms_broker_url):
    """Not even if it began a generation."""
    with remembering(jms_broker_url, 2) as connection:
        send(connection, "old")
        temporary = connection.temporary("queue")
        unit = connection.unit()
        for key in "abcd":
            unit.send(prepare(TextMessage(key, properties={"_AMQ_DUPL_ID": key}), QUEUE), QUEUE)
        unit.send(prepare(TextMessage("x"), temporary), temporary)
        connection.remove(temporary)
        with pytest.raises((TransactionRolledBackError, InvalidDestinationError)):
            unit.commit()
        assert kept(connection) == {"old"}
        assert (send(connection, "old"), send(connection, *"abcd")) == (0, 4)


def test_an_id_is_looked_up_in_the_indexes(jms_broker_url):
    """The cost of a message does not grow with the number of remembered ids."""
    with remembering(jms_broker_url, 4) as connection, connection._store.read() as cursor:
        values = {"generation": 2, "address": "queue:q", "key": "a"}
        plan = [row[3] for row in cursor.execute(f"EXPLAIN QUERY PLAN {queues._INSERT}", values)]
    assert [step.split(" USING ")[0] for step in plan if "duplicate" in step or "older" in step] == [
        "SEARCH older",
        "SEARCH duplicate",
    ]
    assert not [step for step in plan if "SCAN" in step and "CONSTANT" not in step], plan


def test_a_topic_without_subscribers_remembers(jms_broker_url):
    topic = Topic("t")
    with remembering(jms_broker_url, 4) as connection:
        unit = connection.unit()
        unit.send(prepare(TextMessage("x", properties={"_AMQ_DUPL_ID": "a"}), topic), topic)
        unit.commit()
        assert kept(connection) == {"a"}
