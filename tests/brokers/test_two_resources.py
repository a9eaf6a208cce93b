"""A listener with a database, killed over brokers on a network: at some of its steps, or at all of them.

All are visited with JMSJCA_ALL_STEPS=1.
"""

import itertools
import os

import pytest

from tests.unit.transactions.two_resources import (
    WINDOW,
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


@pytest.fixture
def place(request, broker_url, tmp_path):
    """Return a function that returns a new place of the pair and the database of the test."""
    pair, database, has_inbox = (request.getfixturevalue(name) for name in ("pair", "database", "has_inbox"))
    server = request.getfixturevalue("postgresql").url() if database == "postgresql" else None
    url = broker_url(pair)

    def new():
        number = next(_numbers)
        rows = server or f"sqlite:///{tmp_path}/{number}.db"
        return Place(url, rows, f"two.{number}.{tmp_path.name}", BODIES, has_inbox)

    return new


@pytest.mark.parametrize("pair", ["artemis-amqp", "activemq-stomp"])
@pytest.mark.parametrize(
    ("database", "has_inbox"),
    [
        ("sqlite", True),
        ("sqlite", False),
        ("postgresql", True),
        pytest.param("postgresql", False, marks=pytest.mark.torture),
    ],
)
def test_database_destination_and_source_agree(place, pair, database, has_inbox, capsys):
    whole = place()
    prepare(whole)
    kinds = steps_of(whole)
    visited = [last for last in chosen_steps(kinds, 0) if ALL_STEPS or kinds[last - 1] in IN_EVERY_RUN]
    for last in visited:
        wrong = verdict_on(account_of_a_kill(place(), last), BODIES)
        if has_inbox or kinds[last - 1] not in WINDOW:
            assert wrong == [], (last, kinds[last - 1])
        else:
            assert len(wrong) == 1, (last, kinds[last - 1], wrong)
            assert wrong[0].startswith("2 rows")
    with capsys.disabled():
        print(f"\nkills of a listener over {pair} and {database}: {len(visited)} of {len(kinds)} steps visited")
