"""The audit of dependencies: exceptions end, and a package that nobody has looked at is no good news."""

import json
from datetime import date

import pytest

from tests.support.audit import EXCEPTIONS, complaints, exemptions, verdict

TODAY = date(2026, 11, 25)


def test_the_exceptions_of_the_project_can_be_read():
    lines = [line for line in EXCEPTIONS.read_text().splitlines() if line and not line.startswith("#")]
    assert all(len(line.split(maxsplit=2)) == 3 for line in lines)


def test_an_exception_has_a_day_and_a_reason():
    [found] = exemptions("# a comment\n\nPYSEC-1 2026-12-31 never called\n", TODAY)
    assert (found.id, found.until, found.reason) == ("PYSEC-1", date(2026, 12, 31), "never called")


@pytest.mark.parametrize(
    "line",
    ["PYSEC-1", "PYSEC-1 soon never called", "PYSEC-1 2026-12-31", "PYSEC-1 2026-11-24 x", "PYSEC-1 2027-12-31 x"],
)
def test_a_wrong_or_old_exception_is_an_error(line):
    with pytest.raises(ValueError, match=r"."):
        exemptions(line, TODAY)


def test_vulnerable_and_unknown_packages_are_complaints():
    vulnerability = {"id": "PYSEC-1", "fix_versions": ["2.0"]}
    report = {
        "dependencies": [
            {"name": "good", "version": "1.0", "vulns": []},
            {"name": "bad", "version": "1.0", "vulns": [vulnerability]},
            {"name": "strange", "skip_reason": "not found"},
            {"name": "jmsjca", "skip_reason": "not found"},
        ]
    }
    assert list(complaints(report)) == ["bad 1.0: PYSEC-1, fixed in 2.0", "strange: not found"]


GOOD = {"name": "good", "version": "1.0", "vulns": []}
UNKNOWN = {"name": "strange", "skip_reason": "not found"}


@pytest.mark.parametrize(("packages", "status"), [([GOOD], 0), ([GOOD, UNKNOWN], 1), ([UNKNOWN, UNKNOWN], 2)])
def test_the_status_tells_vulnerabilities_from_a_service_that_did_not_answer(packages, status):
    found, text = verdict(json.dumps({"dependencies": packages}), "")
    assert found == status
    assert ("make audit" in text) == (status == 2)


def test_a_run_without_network_says_where_to_run_it():
    status, text = verdict("", "Traceback …\nERROR: Could not connect to PyPI's vulnerability feed")
    assert status == 2
    assert "Could not connect to PyPI's vulnerability feed\nRun `make audit` on a network" in text
