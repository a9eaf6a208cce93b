"""The page about tests has each fixture, and each method of the pytest kit; what waits has a twin for coroutines."""

import inspect
import re
from pathlib import Path

import pytest

from jmsjca.testing import call_recorder, faults, idle, pytest_plugin, recorder, time_travel

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "testing.md").read_text()
WAITS = {"advance_until", "assert_called_once_with", "assert_received", "wait_for", "wait_for_calls", "wait_until_idle"}


def public_functions():
    """Return the public functions and methods of the kit by their name."""
    found = {}
    for module in (recorder, call_recorder, faults, idle, time_travel):
        for name in module.__all__:
            value = getattr(module, name)
            own = vars(value) if inspect.isclass(value) else {name: value}
            found |= {each: one for each, one in own.items() if each[0] != "_" and inspect.isfunction(one)}
    return found


FUNCTIONS = public_functions()


@pytest.mark.parametrize("fixture", pytest_plugin.__all__)
def test_each_fixture_has_a_row(fixture):
    assert re.search(rf"^\| `{fixture}` \| \S", PAGE, re.MULTILINE)


@pytest.mark.parametrize("name", sorted(WAITS))
def test_each_function_that_waits_has_a_twin_on_the_page(name):
    assert inspect.iscoroutinefunction(FUNCTIONS[f"{name}_async"])
    assert f"`{name}_async`" in PAGE
