"""The plan of an action in the console: what is confirmed is what was shown, and nothing else."""

import pytest

from jmsjca.management.console import Console
from tests.unit.management.test_console import Form, browser, text
from tests.unit.management.test_dead_letters import drain, letter, send


@pytest.fixture
def url(tmp_path):
    return f"embedded://{tmp_path}/broker.db"


@pytest.fixture
def writer(url):
    return browser(Console(url, writable=True))


def planned(writer, action, **fields):
    """Return the page with the plan of an action."""
    page = writer.get("/dead-letters?queue=dlq.orders")
    return writer.post(action, data={**Form(page).fields, **fields})


@pytest.mark.parametrize("action", ["/drop", "/replay"])
def test_messages_that_came_after_the_plan_are_not_changed(url, writer, action):
    send(url, letter("a"), letter("b"), to="dlq.orders")
    plan = planned(writer, action, all="yes")
    send(url, letter("c"), to="dlq.orders")
    answer = writer.post(action, data=Form(plan).fields)
    shown = text(answer, 409)
    assert "other messages than in the plan" in shown
    assert "3 messages, 3 planned" in shown
    assert "3 messages, 3 done" in text(writer.post(action, data=Form(answer).fields))
    assert drain(url, "dlq.orders") == []


@pytest.mark.parametrize("action", ["/drop", "/replay"])
def test_messages_that_went_after_the_plan_are_no_success(url, writer, action):
    send(url, letter("a"), to="dlq.orders")
    plan = planned(writer, action, all="yes")
    drain(url, "dlq.orders")
    assert "0 messages" in text(writer.post(action, data=Form(plan).fields), 409)


def test_an_edit_and_replay_is_bound_to_its_plan_too(url, writer):
    send(url, letter("a"), to="dlq.orders")
    page = writer.get("/dead-letters?queue=dlq.orders")
    fields = {**Form(page).fields, "id": page.text.partition('name="id" value="')[2].partition('"')[0], "body": "b"}
    plan = writer.post("/mend", data=fields)
    assert "1 message, 1 done" in text(writer.post("/mend", data=Form(plan).fields))
    assert [message.body for message in drain(url, "orders")] == ["b"]
