"""Queues and messages are looked after with the command line, on every broker whose queues can be browsed."""

import json
import re
import uuid
from datetime import timedelta

import pytest
from brokers import registry
from starlette.testclient import TestClient

from jmsjca import ConnectionFactory, MapMessage, Queue, TextMessage
from jmsjca.__main__ import run
from jmsjca.management.console import Console
from jmsjca.management.insight import Insight

BROKERS = ["artemis", "activemq", "qpid"]


@pytest.fixture(params=BROKERS)
def url(request, broker_url, monkeypatch):
    url = broker_url(f"{request.param}-amqp")
    if request.param == "activemq":
        url += f"?management_url={registry.shared('activemq').url('jolokia')}"
    monkeypatch.setenv("JMSJCA_URL", url)
    return url


@pytest.fixture
def name():
    return f"managed.{uuid.uuid4().hex}"


@pytest.fixture
def read(capsys):
    """Run a command with ``--json``; return what it writes."""

    def _read(*arguments):
        status = run([*arguments, "--json"])
        written = capsys.readouterr()
        assert (status, written.err) == (0, "")
        return json.loads(written.out)

    return _read


def send(url, queue, *messages):
    with ConnectionFactory(url).create_connection() as connection, connection.create_session(True) as session:
        for message in messages:
            session.create_producer(Queue(queue)).send(message)
        session.commit()


def bodies(url, queue):
    return [each.body for each in Insight(url).messages(queue)]


@pytest.mark.parametrize("command", [["browse"], ["dlq", "list"], ["dlq", "export"]], ids=" ".join)
def test_a_queue_that_does_not_exist_is_an_error(url, name, command, capsys):
    assert run([*command, name]) == 1
    assert f"The broker has no queue '{name}'" in capsys.readouterr().err
    Insight(url).create(Queue(name))
    assert run([*command, name]) == 0


def test_messages_are_browsed_edited_copied_moved_and_deleted(url, name, read):
    send(url, name, *(TextMessage(f"{n}", properties={"n": n}) for n in range(6)), MapMessage({"a": 1}))
    page = read("browse", name, "-s", "n >= 1", "--page", "2", "--page-size", "2")
    assert [each["body"] for each in page] == ["3", "4"]
    first = page[0]["message_id"]
    assert read("view", name, first)["properties"] == {"n": 3}
    assert read("edit", name, first, "--body", "edited", "-p", "shop=Bern")[0]["outcome"] == "done"
    assert [each.body for each in Insight(url).messages(name, "shop = 'Bern' AND n = 3")] == ["edited"]
    assert len(read("copy", name, f"{name}.copy", "-s", "n < 2")) == 2
    assert len(read("move", name, f"{name}.moved", "-s", "n < 3")) == 3
    assert len(read("purge", name, "-s", "n = 4")) == 1
    assert bodies(url, name) == ["5", {"a": 1}, "edited"]
    assert bodies(url, f"{name}.copy") == ["0", "1"]
    assert sorted(bodies(url, f"{name}.moved")) == ["0", "1", "2"]


def test_a_moved_message_keeps_its_remaining_life(url, name):
    ConnectionFactory(url).send(name, TextMessage("a"), time_to_live=3600, priority=7)
    [sent] = Insight(url).messages(name)
    assert [each.outcome for each in Insight(url).move(name, to=Queue(f"{name}.moved"))] == ["done"]
    [moved] = Insight(url).messages(f"{name}.moved")
    assert abs(moved.expiration - sent.expiration) < timedelta(minutes=1)
    assert moved.priority == 7


def test_queues_are_created_listed_counted_and_removed(url, name, read):
    read("create", name)
    send(url, name, TextMessage("a"), TextMessage("b"))
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        consumer = session.create_consumer(Queue(name), "n = 4")  # selects nothing
        [row] = [each for each in read("queues") if each["name"] == name]
        assert (row["ready"], row["consumers"]) == (2, 1)
        [found], total = Insight(url).find_destinations(name.upper())  # the page of the console
        assert (found.destination, found.activity.consumers, total) == (Queue(name), 1, 1)
        consumer.close()
    read("purge", name, "--all")
    assert Insight(url).queue_info(name).depth.total == 0
    read("remove", name)
    assert name not in [each["name"] for each in read("queues")]


def test_rates_are_those_of_the_messages_that_came_and_went(url, name):
    send(url, name, TextMessage("before"))

    def work(seconds):
        send(url, name, *(TextMessage(f"{n}") for n in range(20)))
        with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
            consumer = session.create_consumer(Queue(name))
            for _ in range(10):
                assert consumer.receive(60) is not None

    [found] = [each for each in Insight(url).destination_rates(pause=work) if each.destination == Queue(name)]
    assert found.added_per_second > 0
    assert found.added_per_second == pytest.approx(2 * found.settled_per_second)


def test_the_console_shows_consumers_and_measures_rates(url, name):
    send(url, name, TextMessage("a"), TextMessage("b"))
    console = Console(url)
    browser = TestClient(console, base_url="http://127.0.0.1", headers={"Authorization": f"Bearer {console.token}"})
    for query, numbers in {"": ["2", "0", "0", "0"], "&rates=yes": ["2", "0", "0", "0", "0.0", "0.0"]}.items():
        page = browser.get(f"/destinations?search={name}{query}")
        assert page.status_code == 200
        assert re.findall(r"<td[^>]*>([\d.]+)</td>", page.text) == numbers
        assert "Messages per second, measured for a second" in page.text


def test_letters_of_artemis_itself_go_back_where_they_came_from(broker_url, monkeypatch, read):
    url, source, dead = broker_url("artemis-amqp"), f"limited.{uuid.uuid4().hex}", "limited.dead"
    monkeypatch.setenv("JMSJCA_URL", url)
    read("create", dead)
    send(url, source, TextMessage("x", properties={"n": 3, "source": source}))
    with ConnectionFactory(url).create_connection() as connection, connection.create_session(True) as session:
        consumer = session.create_consumer(Queue(source))
        for _ in range(3):
            assert consumer.receive(60) is not None
            session.rollback()
    chosen = ("-s", f"source = '{source}'")
    [listed] = read("dlq", "list", dead, *chosen)
    assert (listed["origin"], listed["reason"]) == (f"queue:{source}", "delivered too often")
    assert [each["outcome"] for each in read("dlq", "replay", dead, *chosen)] == ["done"]
    [replayed] = read("browse", source)
    assert (replayed["body"], replayed["properties"]) == ("x", {"n": 3, "source": source, "_JMSJCA_ReplayCount": 1})
