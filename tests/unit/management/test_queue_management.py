"""Queues and messages that an operator changes: created, removed, viewed, edited, copied, exported and imported."""

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from jmsjca import (
    BytesMessage,
    ConnectionFactory,
    DeliveryMode,
    MapMessage,
    Message,
    ObjectMessage,
    Queue,
    StreamMessage,
    TextMessage,
    Topic,
)
from jmsjca.errors import InvalidArgumentError, InvalidDestinationError, MessageFormatError, NotSupportedError
from jmsjca.management.insight import Edit, Insight
from jmsjca.management.message_changes import Change, move, paced
from jmsjca.providers.embedded.connection import EmbeddedConnection
from tests.unit.management.test_commands import call, read, url  # noqa: F401  # fixtures
from tests.unit.management.test_dead_letters import drain, fail, letter, listen, send


def bodies(url, queue):  # noqa: F811
    return [each.body for each in Insight(url).messages(queue)]


def test_a_queue_is_created_and_removed(call, read):  # noqa: F811
    assert call("create", "orders")[0] == 0
    assert [each["name"] for each in read("queues")] == ["orders"]
    assert call("create", "orders")[0] == 0
    assert call("remove", "orders")[0] == 0
    assert read("queues") == []
    status, _, errors = call("remove", "orders")
    assert (status, "no queue:orders to remove" in errors) == (1, True)


def test_a_topic_needs_no_creation(url):  # noqa: F811
    with pytest.raises(InvalidDestinationError):
        Insight(url).create(Topic("news"))


def test_a_purge_deletes_all_at_once(url):  # noqa: F811
    send(url, *(TextMessage(str(number)) for number in range(120)))
    assert Insight(url).purge("orders") == 120
    assert Insight(url).purge("orders") == 0


def test_one_queue_tells_its_depth_and_consumers(url):  # noqa: F811
    send(url, TextMessage("a pear"))
    found = Insight(url).queue_info("orders")
    assert (found.depth.ready, found.activity.consumers) == (1, 0)


def test_rates_are_those_of_the_messages_that_came_and_went(url):  # noqa: F811
    send(url, TextMessage("before"))

    def work(_):
        send(url, *(TextMessage(str(number)) for number in range(5)))
        assert len(drain(url, "orders")) == 6
        send(url, TextMessage("after"))

    [found] = Insight(url).destination_rates(pause=work)
    assert (found.depth.ready, found.activity.consumers) == (1, 0)
    assert found.added_per_second == found.settled_per_second > 0
    with pytest.raises(InvalidArgumentError, match="interval=0"):
        Insight(url).destination_rates(0)


def test_the_command_line_shows_rates(url, read):  # noqa: F811
    send(url, TextMessage("a pear"))
    [found] = read("queues", "--rates", "0.01")
    assert (found["name"], found["added_per_second"], found["settled_per_second"]) == ("orders", 0.0, 0.0)


def test_top_shows_the_busiest_queue_first(url, call, monkeypatch):  # noqa: F811
    send(url, TextMessage("x"), to="a.quiet.one")
    measure = Insight.destination_rates

    def work(_):
        send(url, *(TextMessage("x") for _ in range(5)), to="orders")
        assert len(drain(url, "orders")) == 5

    monkeypatch.setattr(Insight, "destination_rates", lambda self, interval: measure(self, interval, pause=work))
    send(url, TextMessage("x"), to="orders")
    assert len(drain(url, "orders")) == 1
    status, output, _ = call("top", "--url", url, "--count", "2", "--json")
    rows = [row for line in output.splitlines() for row in json.loads(line)]
    assert (status, [row["name"] for row in rows]) == (0, ["orders", "a.quiet.one"] * 2)
    assert all(row["added_per_second"] == row["settled_per_second"] > 0 for row in rows[::2])
    assert call("top", "--url", url, "--file", "health.json")[0] == call("top")[0] == 2


def test_rates_need_a_broker_that_counts(url, monkeypatch):  # noqa: F811
    make = EmbeddedConnection.__init__

    def weaken(self, store, limits, capabilities, *ids):
        make(self, store, limits, replace(capabilities, counts_traffic=False), *ids)

    monkeypatch.setattr(EmbeddedConnection, "__init__", weaken)
    with pytest.raises(NotSupportedError, match="counts_traffic"):
        Insight(url).destination_rates()


def test_a_message_is_viewed(url, call):  # noqa: F811
    send(url, MapMessage({"fruit": "pear"}, properties={"shop": "Bern"}), TextMessage("two\nlines"))
    first, second = Insight(url).messages("orders")
    shown = call("view", "orders", first.message_id)[1]
    for line in ("kind:           MapMessage", "property shop:  Bern (str)", "entry fruit:    pear (str)"):
        assert line in shown
    assert call("view", "orders", second.message_id)[1].endswith("two\nlines\n")
    assert call("view", "orders", "ID:1")[0] == 1


def test_a_message_is_edited_in_place_of_the_original(url, read):  # noqa: F811
    send(url, TextMessage("a paer", properties={"shop": "Bern", "n": 3}, correlation_id="c"), TextMessage("a fig"))
    [first, _] = Insight(url).messages("orders")
    edits = ["--body", "a pear", "-p", "shop=Basel", "--remove", "n"]
    [changed] = read("edit", "orders", first.message_id, *edits)
    assert changed["outcome"] == "done"
    assert bodies(url, "orders") == ["a fig", "a pear"]
    edited = drain(url, "orders")[1]
    assert (dict(edited.properties), edited.correlation_id) == ({"shop": "Basel"}, "c")


def test_bytes_are_edited_as_text_and_maps_are_not(url):  # noqa: F811
    send(url, BytesMessage(b"a paer"), MapMessage({"fruit": "paer"}))
    insight = Insight(url)
    first, second = insight.messages("orders")
    insight.edit("orders", first.message_id, Edit("a pear"))
    with pytest.raises(InvalidArgumentError, match="MapMessage cannot be replaced by a text"):
        insight.edit("orders", second.message_id, Edit("a pear"))
    with pytest.raises(MessageFormatError):
        insight.edit("orders", second.message_id, Edit(properties={"no name": 1}))
    untouched, edited = drain(url, "orders")
    assert (dict(untouched.body), edited.body) == ({"fruit": "paer"}, b"a pear")


def test_an_edit_of_nothing_is_a_mistake(url, call):  # noqa: F811
    send(url, letter("x"), to="dlq.orders")
    [found] = Insight(url).messages("dlq.orders")
    for command in (["edit"], ["dlq", "edit"]):
        status, _, errors = call(*command, "dlq.orders", found.message_id)
        assert (status, "nothing to edit: add --body" in errors) == (2, True)


@pytest.mark.parametrize("command", [("edit",), ("dlq", "edit"), ("dlq", "edit", "--dry-run")])
def test_a_property_that_is_not_there_is_not_removed_in_silence(url, call, command):  # noqa: F811
    send(url, TextMessage("x", properties={"shop": "Bern"}), to="dlq.orders")
    [found] = Insight(url).messages("dlq.orders")
    edit = [*command, "dlq.orders", found.message_id, "--body", "y", "--remove", "shop"]
    status, _, errors = call(*edit, "--remove", "Shop", *(["--to", "orders"] if "dlq" in command else []))
    assert status == 2
    assert errors == (
        f"jmsjca: The message {found.message_id} has no property 'Shop' to remove (did you mean shop?). "
        "Nothing was changed.\n"
    )
    assert [each.body for each in drain(url, "dlq.orders")] == ["x"]


def test_a_dry_run_refuses_an_edit_that_does_not_fit(url, call):  # noqa: F811
    send(url, MapMessage({"fruit": "paer"}), to="dlq.orders")
    [found] = Insight(url).messages("dlq.orders")
    edit = ["dlq", "edit", "dlq.orders", found.message_id, "--body", "y", "--to", "orders", "--dry-run"]
    status, _, errors = call(*edit)
    assert (status, "body of a MapMessage cannot be replaced" in errors) == (2, True)


def test_messages_are_copied_and_stay(url, read):  # noqa: F811
    send(url, *(TextMessage(str(n), properties={"n": n, "_AMQ_DUPL_ID": str(n)}) for n in range(60)))
    assert {each["outcome"] for each in read("copy", "orders", "audit", "-s", "n < 55", "--dry-run")} == {"planned"}
    assert bodies(url, "audit") == []
    assert [each["outcome"] for each in read("copy", "orders", "orders", "-s", "n < 5")] == ["done"] * 5
    assert len(drain(url, "orders")) == 65


@pytest.mark.parametrize("change", ["move", "copy", "edit"])
def test_a_moved_message_keeps_its_remaining_life(url, change):  # noqa: F811
    factory, insight = ConnectionFactory(url), Insight(url)
    factory.send("orders", TextMessage("a pear"), time_to_live=3600, priority=7, delivery_mode="non_persistent")
    factory.send("orders", TextMessage("a fig"))
    mortal, lasting = insight.messages("orders")
    if change == "edit":
        for message in (mortal, lasting):
            insight.edit("orders", message.message_id, Edit("a plum"), to=Queue("parked"))
    else:
        assert {each.outcome for each in getattr(insight, change)("orders", to=Queue("parked"))} == {"done"}
    moved, kept = drain(url, "parked")
    assert abs(moved.expiration - mortal.expiration) < timedelta(minutes=1)
    assert (moved.priority, moved.delivery_mode) == (7, DeliveryMode.NON_PERSISTENT)
    assert kept.expiration is None


def moved_on(url, year):  # noqa: F811
    """Return what becomes of the expiration of a message that expires at the beginning of a year."""
    message = TextMessage("a pear")
    message.expiration = datetime(year, 1, 1, tzinfo=UTC)
    with ConnectionFactory(url).create_connection() as connection, connection.create_session(True) as session:
        move(session, message, Queue("parked"))
        session.commit()
    [moved] = drain(url, "parked")
    return moved.expiration


def test_a_message_whose_time_is_over_is_moved_to_stay(url):  # noqa: F811
    assert moved_on(url, 2020) is None


def test_an_expiration_beyond_those_of_sends_becomes_the_furthest(url):  # noqa: F811
    assert moved_on(url, 9000).year > 2300


def test_a_replayed_letter_that_expires_itself_keeps_its_remaining_life(url):  # noqa: F811
    """As earlier releases moved it."""
    ConnectionFactory(url).send("dlq.orders", moved := letter("x"), time_to_live=3600)
    assert [each.outcome for each in Insight(url).replay("dlq.orders")] == ["done"]
    [replayed] = drain(url, "orders")
    assert abs(replayed.expiration - moved.expiration) < timedelta(minutes=1)


def test_a_dead_letter_is_edited_and_processed(url, call, read):  # noqa: F811
    send(url, TextMessage("a paer", properties={"n": 1}))
    listen(url, fail, 1)
    [found] = read("dlq", "list", "dlq.orders")
    edit = ["dlq", "edit", "dlq.orders", found["message_id"], "--body", "a pear"]
    assert [each["outcome"] for each in read(*edit, "--dry-run")] == ["planned"]
    [changed] = read(*edit)
    assert (changed["outcome"], changed["target"]) == ("done", "queue:orders")
    got = []
    listen(url, lambda message: got.append((message.body, dict(message.properties))), 1)
    assert got == [("a pear", {"n": 1, "_JMSJCA_ReplayCount": 1})]
    assert call(*edit)[0] == 1


def test_a_rate_limits_a_replay(url, read):  # noqa: F811
    send(url, letter("x"), letter("y"), to="dlq.orders")
    assert [each["outcome"] for each in read("dlq", "replay", "dlq.orders", "--rate", "1000")] == ["done", "done"]
    with pytest.raises(InvalidArgumentError, match="rate=0"):
        list(Insight(url).replay("dlq.orders", rate=0))


class Time:
    """A clock that only a pause, or a step of the work, moves on."""

    def __init__(self):
        self.now, self.pauses = 100.0, []

    def pause(self, seconds):
        self.pauses.append(round(seconds, 6))
        self.now += seconds


@pytest.mark.parametrize(
    ("work", "pauses"),
    [
        ([0.0] * 4, [0.5] * 4),
        ([0.1] * 3, [0.5, 0.4, 0.4]),
        ([0.0, 2.0, 0.0], [0.5, 0.5]),  # no burst after a slow one
    ],
)
def test_a_rate_is_kept_and_a_delay_is_not_made_up_for(work, pauses):
    time = Time()

    def changes():
        for number, seconds in enumerate(work):
            time.now += seconds if number else 0
            yield Change(str(number), None, "done")

    paced_changes = paced(changes(), 2, clock=lambda: time.now, pause=time.pause)
    assert [each.message_id for each in paced_changes] == [str(number) for number in range(len(work))]
    assert time.pauses == pauses


MESSAGES = [
    TextMessage("a pear\n\u2028\U0001f350", properties={"n": 3, "big": 2**40, "x": 1.5, "eu": True}, type="fruit"),
    TextMessage(),
    BytesMessage(bytes(range(256)), correlation_id="c", reply_to=Queue("answers")),
    MapMessage({"fruit": "pear", "count": 3, "raw": b"\0"}),
    StreamMessage(["a", 1, b"\0", 1.5]),
    ObjectMessage({"a": [1, 2]}),
    Message(),
]


def content(message):
    return message.pickled if isinstance(message, ObjectMessage) else message.body


def test_what_is_exported_is_imported_as_it_was(url, call, read, tmp_path):  # noqa: F811
    send(url, *MESSAGES, to="dlq.orders")
    exported = call("dlq", "export", "dlq.orders")[1]
    file = tmp_path / "letters.jsonl"
    file.write_text(exported)
    assert exported.count("\n") == len(MESSAGES)
    assert read("dlq", "import", "copy", str(file)) == [{"queue": "copy", "imported": len(MESSAGES)}]
    for before, after in zip(drain(url, "dlq.orders"), drain(url, "copy"), strict=True):
        assert type(after) is type(before)
        assert content(after) == content(before)
        assert {k: (type(v), v) for k, v in after.properties.items()} == {
            k: (type(v), v) for k, v in before.properties.items()
        }
        for header in ("correlation_id", "reply_to", "type", "priority", "delivery_mode"):
            assert getattr(after, header) == getattr(before, header)


def test_an_imported_letter_is_replayed_to_its_origin(url, call, tmp_path):  # noqa: F811
    send(url, TextMessage("a pear"))
    listen(url, fail, 1)
    file = tmp_path / "letters.jsonl"
    file.write_text(call("dlq", "export", "dlq.orders")[1])
    assert call("dlq", "drop", "dlq.orders", "--all")[0] == 0
    assert call("dlq", "import", "dlq.orders", str(file))[0] == 0
    [found] = Insight(url).dead_letters("dlq.orders")
    assert (found.origin, found.reason, found.user_data) == (Queue("orders"), "ValueError", {"shop": "Bern"})
    assert [each.outcome for each in Insight(url).replay("dlq.orders")] == ["done"]


GOOD = json.dumps(
    {"stored": {"headers": '{"kind":"text","properties":{}}', "body": None, "priority": 4, "persistent": 1}}
)


@pytest.mark.parametrize(
    "line",
    ["no json", "[]", "{}", '{"stored": null}', GOOD.replace('"text', '"tex'), GOOD.replace("4", '"x"'), "[" * 100_000],
)
def test_a_wrong_line_stops_the_import_before_it_begins(url, call, tmp_path, caplog, line):  # noqa: F811
    file = tmp_path / "letters.jsonl"
    file.write_text(f"{GOOD}\n\n{line}\n")
    status, output, errors = call("dlq", "import", "orders", str(file))
    assert (status, output) == (2, "")
    assert "Line 3 holds no message" in errors
    assert errors.count("\n") == 1
    assert caplog.records == []  # they would be further lines
    assert bodies(url, "orders") == []


def test_a_file_that_is_not_there_is_one_line(call):  # noqa: F811
    status, _, errors = call("dlq", "import", "orders", "/nowhere/letters.jsonl")
    assert (status, "cannot be read" in errors) == (2, True)


def test_more_messages_than_a_page_are_exported(url, call):  # noqa: F811
    send(url, *(letter(str(number)) for number in range(1100)), to="dlq.orders")
    exported = Counter(json.loads(line)["body"] for line in call("dlq", "export", "dlq.orders")[1].splitlines())
    assert exported == Counter(map(str, range(1100)))
