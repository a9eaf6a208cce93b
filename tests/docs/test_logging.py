"""The page on logging lists every logger and every event of a listener, and the records have the fields."""

import ast
import json
import logging
import re
from pathlib import Path
from typing import get_args

import pytest

from jmsjca import ResourceAdapter
from jmsjca.inbound.listener_log import Event
from tests.unit.inbound.deliveries import until
from tests.unit.inbound.listeners import PATIENCE, Inbox, Recorder, send

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "logging.md").read_text()
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


HELPERS = {  # functions that add fields to those of their caller
    "log_fields": set(),
    "self._fields": {"message_id", "messages", "outcome", "duration"},
    "self.fields": {"duration"},
    "self._log.fields": {"duration"},
    "self._fields_of_stop": {"handlers", "duration"},
}


def logged():
    """The fields and the levels of each event, out of the source."""
    fields, levels = {}, {}
    for path in (ROOT / "jmsjca" / "inbound").glob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, ast.FunctionDef):
                continue
            found = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
            names = {ast.unparse(call.func) for call in found}
            for call in found:
                added = HELPERS.get(ast.unparse(call.func))
                if added is None or not isinstance(call.args[0], ast.Constant):
                    continue
                event = call.args[0].value
                keywords = {keyword.arg for keyword in call.keywords if keyword.arg}
                fields.setdefault(event, set()).update(keywords | added)
                levels.setdefault(event, set()).update(name[7:] for name in names if name.startswith("logger."))
    return fields, levels


def rows():
    """The rows of the table of events: level and further fields of each."""
    section = PAGE.partition("## Events of listeners")[2]
    for event, level, fields in re.findall(
        r"^\| `(\w+)` \| ([^|]*) \| [^|]* \|([^|]*)\|$", section, flags=re.MULTILINE
    ):
        yield event, set(level.split(", ")), set(re.findall(r"`(\w+)`", fields))


def test_every_event_is_logged():
    assert sorted(logged()[0]) == sorted(get_args(Event))


def test_the_table_has_the_fields_of_each_event():
    fields, _ = logged()
    assert {event: found for event, _, found in rows()} == fields


def test_the_table_has_the_levels_of_each_event():
    _, levels = logged()
    levels["handler_failed"] = {"info", "error"}  # logged by the caller of the function with the fields
    levels["delivery_limit"] = {"info", "warning"}  # by the level that it is called with
    levels["stopped_permanently"] = {"error"}  # also by `exception`, which is an error
    listed = {event: found for event, found, _ in rows()}
    alone = {event: found for event, found in levels.items() if len(found) == 1 or event == "handler_failed"}
    assert len(alone) > 10
    assert {event: listed[event] for event in alone} == alone


def test_the_formatter_of_the_page_knows_all_fields(formatter):
    fields, _ = logged()
    assert set().union(*fields.values()) <= set(formatter.FIELDS)


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
        until(lambda: any(getattr(record, "event", None) == "dead_lettered" for record in caplog.records))
        adapter.stop()
    lines = [formatter.format(record) for record in caplog.records]
    found = [json.loads(line) for line in lines]
    assert [each["status"] for each in found if each.get("event") == "status_changed"][:2] == ["Connecting", "Up"]
    [failed] = [each for each in found if each.get("event") == "handler_failed"][:1]
    assert (failed["destination"], failed["delivery_count"], failed["level"]) == ("queue:q", 1, "ERROR")
    assert failed["message_id"].startswith("ID:")
    assert failed["endpoint"] == adapter.activations[0].name
    assert (failed["messages"], failed["outcome"], failed["suppressed"]) == (1, "rolled back", 0)
    assert failed["duration"] > 0
    assert {each["adapter"] for each in found} == {jms_broker_url}
    [moved] = [each for each in found if each.get("event") == "dead_lettered"]
    assert (moved["destination"], moved["target"], moved["outcome"]) == ("queue:q", "queue:dlq", "moved")
    assert moved["duration"] > 0
    assert all(each["duration"] >= 0 for each in found if each.get("event") == "status_changed")
    assert "ValueError: no price" in failed["exception"]
    assert not any("a secret body" in line or "\n" in line for line in lines)
