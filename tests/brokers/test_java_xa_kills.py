"""A listener whose database decides what the broker has prepared, killed at its steps: all agrees after recovery.

A sample in every run; all steps with JMSJCA_ALL_STEPS=1.
"""

import os
import uuid

import pytest

from tests.unit.transactions.failures import cases_of
from tests.unit.transactions.two_resources import Place, account_of_a_kill, verdict_on

BODIES = ("a",)
PAIRS = {"Artemis over Core": "artemis-java"}
PREPARED, DECIDED = ("after the broker has prepared", 1), ("after the database's commit", 1)
STEPS = (
    ("before the broker prepares", 1),
    PREPARED,
    ("after INSERT", 2),  # the row of the decision
    DECIDED,
    ("before the broker's commit", 1),
    ("after the broker's commit", 1),
)
ALL_STEPS = bool(os.environ.get("JMSJCA_ALL_STEPS"))


@pytest.fixture
def new_place(request, broker_url, tmp_path):
    """Return a function that returns a new place of a case."""

    def new(case, **fields):
        number = uuid.uuid4().hex
        server = request.getfixturevalue("postgresql").url() if case.database == "PostgreSQL" else None
        rows = server or f"sqlite:///{tmp_path}/{number}.db"
        return Place(broker_url(PAIRS[case.broker]), rows, f"xa.{number}", BODIES, **{**case.fields, **fields})

    return new


def in_every_run(case):
    if case.database != "PostgreSQL":
        return set()
    return {PREPARED} if case.broker == "Artemis over Core" else {DECIDED}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "case", cases_of("test_a_killed_listener_with_a_last_resource"), ids=lambda c: f"{c.broker}-{c.database}"
)
def test_a_killed_listener_with_a_last_resource(new_place, case, capsys):
    chosen = [step for step in STEPS if ALL_STEPS or step in in_every_run(case)]
    for step in chosen:
        assert verdict_on(account_of_a_kill(new_place(case), step), BODIES) == [], step
    with capsys.disabled():
        print(
            f"\nkills over {case.broker} with a deciding {case.database}: {len(chosen)} of {len(STEPS)} steps visited"
        )


def test_without_the_row_of_the_decision_they_disagree(new_place):
    """The control: a kill after the commit of the database."""
    case, *_ = cases_of("test_a_killed_listener_with_a_last_resource")
    place = new_place(case, fault="no decision row")
    assert verdict_on(account_of_a_kill(place, DECIDED), BODIES) == ["2 rows of a"]
