"""Which cases of brokers are run again, and that nothing is hidden by it."""

import re
import subprocess
import sys
import textwrap

import pytest

_SETTINGS = """
[pytest]
markers =
    by_hand
    torture
"""
_CASES = """
import pytest

runs = {}

def fails(name, times):
    runs[name] = runs.get(name, 0) + 1
    assert runs[name] > times, f"failure {runs[name]} of {name}"
"""


@pytest.fixture
def outcome(tmp_path):
    """Runs cases, and gives what pytest printed and how it ended."""

    def run(cases):
        (tmp_path / "conftest.py").write_text("from run_again import pytest_runtest_protocol, pytest_terminal_summary")
        (tmp_path / "pytest.ini").write_text(_SETTINGS)
        (tmp_path / "test_cases.py").write_text(_CASES + textwrap.dedent(cases))
        command = [sys.executable, "-m", "pytest", "-q", "--rootdir", tmp_path, tmp_path]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False)
        return ended.stdout

    return run


@pytest.fixture(autouse=True)
def _own_packages(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", ":".join(path for path in sys.path if path))


def counts(printed):
    """How many passed and failed."""
    return tuple(int((re.search(rf"(\d+) {word}", printed) or [0, 0])[1]) for word in ("passed", "failed"))


def test_two_may_fail_once_and_their_failures_are_printed(outcome):
    printed = outcome("""
        @pytest.mark.parametrize("name", ["a", "b", "c"])
        def test_unsteady(name):
            fails(name, 1)
    """)
    assert counts(printed) == (2, 1)
    assert all(f"failure 1 of {name}" in printed for name in "abc")
    assert printed.count("failed, and was run again: test_cases.py::test_unsteady[") == 2


def test_what_fails_twice_fails(outcome):
    printed = outcome("""
        def test_unsteady():
            fails("a", 2)
    """)
    assert counts(printed) == (0, 1)
    assert "failure 2 of a" in printed


def test_cases_without_code_of_ours_have_three_attempts(outcome):
    printed = outcome("""
        @pytest.mark.by_hand
        @pytest.mark.parametrize("times", [1, 2, 3])
        def test_broker(times):
            fails(times, times)
    """)
    assert counts(printed) == (2, 1)
    assert "Run again for what brokers did by themselves: test_cases.py::test_broker[1]," in printed


def test_torture_has_one(outcome):
    printed = outcome("""
        @pytest.mark.torture
        def test_race():
            fails("a", 1)
    """)
    assert counts(printed) == (0, 1)


def test_fixtures_are_made_anew(outcome):
    printed = outcome("""
        @pytest.fixture
        def thing():
            return []

        def test_thing(thing):
            thing.append(1)
            assert thing == [1]
            fails("a", 1)
    """)
    assert counts(printed) == (1, 0)
