"""The page on logging lists every logger and every event of a listener, and the records have the fields."""

import ast
import json
import logging
import re
from pathlib import Path
from typing import get_args

import pytest

from jmsjca import ResourceAdapter
from jmsjca.inbound.log_fields import Event
from tests.unit.inbound.listeners import PATIENCE, Inbox, Recorder, send

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "logging.md").read_text()
SOURCES = sorted((ROOT / "jmsjca").rglob("*.py"))
LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}


def calls(path):
    """Yield the calls in a module."""
    return (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))


def loggers():
    for path in SOURCES:
        for call in calls(path):
            if ast.unparse(call.func) == "get_logger" and call.args and isinstance(call.args[0], ast.Constant):
                yield call.args[0].value


def records():
    """Yield the calls that write a record, of listeners."""
    for path in (ROOT / "jmsjca" / "inbound").glob("*.py"):
        for call in calls(path):
            function = ast.unparse(call.func)
            if function.partition(".")[0] == "logger" and function.partition(".")[2] in LEVELS:
                yield path, call


def test_every_logger_is_on_the_page():
    found = {name for name in loggers() if name not in {"jmsjca", "jmsjca.demo"}}
    assert len(found) > 9
    assert {name for name in found if f"`{name}`" not in PAGE} == set()


def test_every_event_is_on_the_page_and_no_other():
    section = PAGE.partition("## Events of listeners")[2]
    assert sorted(re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)) == sorted(get_args(Event))


def test_every_event_is_logged():
    events = set()
    for path in (ROOT / "jmsjca" / "inbound").glob("*.py"):
        for call in calls(path):
            if ast.unparse(call.func) in {"log_fields", "self._fields"} and isinstance(call.args[0], ast.Constant):
                events.add(call.args[0].value)
    assert sorted(events) == sorted(get_args(Event))


def test_every_record_of_a_listener_has_fields():
    found = list(records())
    assert len(found) > 15
    for path, call in found:
        assert any(keyword.arg == "extra" for keyword in call.keywords), f"{path.name}:{call.lineno}"


@pytest.fixture
def formatter():
    """The formatter of the page."""
    code = PAGE.partition("```python\n")[2].partition("\nhandler = ")[0]
    names = {}
    exec(code, names)  # noqa: S102  # of the page
    return names["JSONFormatter"]()


def test_the_formatter_of_the_page_writes_the_fields(jms_broker_url, formatter, caplog):
    caplog.set_level(logging.INFO, "jmsjca")
    recorder = Recorder()
    adapter = ResourceAdapter(jms_broker_url, hooks=[recorder])
    adapter.listener("q", redelivery_handling="1:move(queue:dlq)")(Inbox(ValueError("no price"), ValueError("again")))
    with adapter:
        send(adapter, "a secret body")
        assert recorder.outcomes.get(timeout=PATIENCE)
        adapter.stop()
    lines = [formatter.format(record) for record in caplog.records]
    found = [json.loads(line) for line in lines]
    assert [each["status"] for each in found if each.get("event") == "status_changed"][:2] == ["Connecting", "Up"]
    [failed] = [each for each in found if each.get("event") == "handler_failed"][:1]
    assert (failed["destination"], failed["delivery_count"], failed["level"]) == ("queue:q", 1, "ERROR")
    assert failed["message_id"].startswith("ID:")
    assert failed["endpoint"] == adapter.activations[0].name
    assert "ValueError: no price" in failed["exception"]
    assert not any("a secret body" in line or "\n" in line for line in lines)
