"""A listener with a database, killed over brokers on a network: at some of its steps, or at all of them.

All are visited with JMSJCA_ALL_STEPS=1.
"""

import itertools
import os

import pytest

from tests.unit.transactions.failures import cases_of
from tests.unit.transactions.two_resources import (
    Place,
    account_of_a_kill,
    chosen_steps,
    prepare,
    steps_of,
    verdict_on,
)

BODIES = ("a", "b")
IN_EVERY_RUN = {"before the database's commit", "after the database's commit", "before the broker's commit"}
ALL_STEPS = bool(os.environ.get("JMSJCA_ALL_STEPS"))
_numbers = itertools.count()


PAIRS = {"Artemis over AMQP": "artemis-amqp", "ActiveMQ over STOMP": "activemq-stomp"}


@pytest.fixture
def place(request, broker_url, tmp_path, pair, case):
    """Return a function that returns a new place of the pair and the case of the test."""
    server = request.getfixturevalue("postgresql").url() if case.database == "PostgreSQL" else None
    url = broker_url(pair)

    def new():
        number = next(_numbers)
        rows = server or f"sqlite:///{tmp_path}/{number}.db"
        return Place(url, rows, f"two.{number}.{tmp_path.name}", BODIES, **case.fields)

    return new


def listed(case):
    """Return the case as a parameter; one of them takes its time in the torture alone."""
    marks = [pytest.mark.torture] if case.database == "PostgreSQL" and not case.is_exact else []
    pair = PAIRS[case.broker]
    return pytest.param(pair, case, marks=marks, id=f"{pair}-{case.database}-{case.listener}")


@pytest.mark.parametrize(
    ("pair", "case"), [listed(case) for case in cases_of("test_database_destination_and_source_agree")]
)
def test_database_destination_and_source_agree(place, pair, case, capsys):
    whole = place()
    prepare(whole)
    kinds = steps_of(whole)
    visited = [last for last in chosen_steps(kinds, 0) if ALL_STEPS or kinds[last - 1] in IN_EVERY_RUN]
    for last in visited:
        wrong = verdict_on(account_of_a_kill(place(), last), BODIES)
        assert case.fault(kinds[last - 1], wrong) == [], (last, kinds[last - 1])
    with capsys.disabled():
        print(f"\nkills of a listener over {pair} and {case.database}: {len(visited)} of {len(kinds)} steps visited")
