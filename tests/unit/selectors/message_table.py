"""Messages in a table like that of the embedded broker, and the result of a selector in SQL."""

import json
import math
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from jmsjca.selectors import Layout, Selector, translate

HEADERS = {
    "JMSCorrelationID": "correlation",
    "JMSDeliveryMode": "mode",
    "JMSMessageID": "id",
    "JMSPriority": "9 - urgency",
    "JMSTimestamp": "time",
    "JMSType": "kind",
}
LAYOUT = Layout(headers=HEADERS, properties="headers", path="$.p")
_OTHERS = ("Timestamp", "CorrelationID", "DeliveryMode", "MessageID", "Type")  # in the order of the columns
# The affinity of a column would make the text '5' equal to the number 5.
_TABLE = """CREATE TABLE message (number INTEGER PRIMARY KEY, headers TEXT, urgency INTEGER, time INTEGER,
            correlation TEXT, mode TEXT, id TEXT, kind TEXT)"""
_READ = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION}
_FUNCTIONS = {"coalesce", "glob", "instr", "json_array", "json_extract", "json_type", "replace", "typeof"}


class MessageTable:
    """A table of messages that nothing but reading is allowed on.

    Attributes:
        denied: What SQLite asked for and was not allowed.
    """

    def __init__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        self.denied: list[object] = []
        self._db = sqlite3.connect(":memory:")
        self._db.execute(_TABLE)
        for number, message in enumerate(messages):
            self._insert(number, message)
        self._db.set_authorizer(self._authorize)

    def selected(self, selector: Selector) -> set[int]:
        """The numbers of the messages that are selected."""
        condition = translate(selector, LAYOUT)
        query = f"SELECT number FROM message WHERE {condition.sql}"  # noqa: S608  # what is being tested
        rows = self._db.execute(query, condition.parameters)
        return {number for (number,) in rows}

    def close(self) -> None:
        self._db.close()

    def _insert(self, number: int, message: Mapping[str, Any]) -> None:
        properties = {name: value for name, value in message.items() if name not in HEADERS}
        values = (as_json({"id": "x", "p": properties, "z": 1}), 9 - message.get("JMSPriority", 4))
        others = [message.get(f"JMS{name}") for name in _OTHERS]
        self._db.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (number, *values, *others))

    def _authorize(self, action: int, one: str | None, other: str | None, *_: object) -> int:
        allowed = action in _READ and (
            action == sqlite3.SQLITE_SELECT
            or (action == sqlite3.SQLITE_READ and one == "message")
            or (action == sqlite3.SQLITE_FUNCTION and other in _FUNCTIONS)
        )
        if not allowed:
            self.denied.append((action, one, other))
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def as_json(values: object) -> str:
    """Write JSON as `Layout` asks for it."""
    if isinstance(values, dict):
        return (
            "{" + ",".join(f"{json.dumps(name, ensure_ascii=False)}:{as_json(v)}" for name, v in values.items()) + "}"
        )
    if isinstance(values, float) and not math.isfinite(values):
        return "null" if math.isnan(values) else "9e999" if values > 0 else "-9e999"
    return json.dumps(values, ensure_ascii=False)


def reads_decimals_exactly() -> bool:
    """Tell whether this SQLite reads decimals as Python does; most are an ulp off for one in ten thousand."""
    hard = [6.696887221807168, 5.93774739487656e27, -57826.85185488559, 3.215457523089397e-197, 2.1720959374122394e-308]
    with closing(sqlite3.connect(":memory:")) as db:  # Python 3.13 reports connections that are left open
        rows = db.execute("SELECT value FROM json_each(?)", (json.dumps(hard),))
        return [value for (value,) in rows] == hard
