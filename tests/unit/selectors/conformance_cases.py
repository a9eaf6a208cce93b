"""The conformance cases about selectors, from the folder that JMSJCA_CONFORMANCE names."""

import json
import os
from pathlib import Path

import pytest

from jmsjca.errors import InvalidSelectorError
from jmsjca.messages import Byte, Double, Float, Int, Long, Short
from jmsjca.selectors import Selector

_TYPES = {"byte": Byte, "short": Short, "int": Int, "long": Long, "float": Float, "double": Double}


def rows(name):
    """The rows of a file as parameters of a test.

    If no folder is named there is one parameter without a row, and its test is skipped. If the named folder is missing,
    its test fails.
    """
    folder = os.environ.get("JMSJCA_CONFORMANCE")
    if not folder:
        return [pytest.param(None, marks=pytest.mark.skip(reason="JMSJCA_CONFORMANCE names no folder with cases"))]
    if not Path(folder).is_dir():
        return [pytest.param(None, marks=pytest.mark.missing_cases(reason=f"JMSJCA_CONFORMANCE: no folder {folder!r}"))]
    cases = json.loads(Path(folder, f"{name}.json").read_text(encoding="utf-8"))
    return [pytest.param(row, id=f"{place} {row.get('selector', '')}"[:80]) for place, row in enumerate(cases)]


def values(row):
    """What the headers and properties of a case are, with their types."""
    given = {**row["headers"], **row["properties"]}
    return {name: _typed(value) for name, value in given.items()}


def outcome(row):
    """What the selector of a case gives: true, false, unknown, or that it is refused."""
    try:
        result = Selector.parse(row["selector"]).evaluate(values(row))
    except InvalidSelectorError:
        return "refused"
    return {True: "true", False: "false", None: "unknown"}[result]


def _typed(value):
    return _TYPES[value["type"]](value["value"]) if isinstance(value, dict) else value
