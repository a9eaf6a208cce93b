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


def place_at(url, folder, **fields):
    number = next(_numbers)
    return Place(url, f"sqlite:///{folder}/{number}.db", f"two.{number}.{folder.name}", BODIES, **fields)


@pytest.mark.parametrize("pair", ["artemis-amqp", "activemq-stomp"])
@pytest.mark.parametrize("has_inbox", [True, False], ids=["inbox", "no inbox"])
def test_database_destination_and_source_agree(pair, has_inbox, broker_url, tmp_path, capsys):
    url = broker_url(pair)
    whole = place_at(url, tmp_path, has_inbox=has_inbox)
    prepare(whole)
    kinds = steps_of(whole)
    visited = [last for last in chosen_steps(kinds, 0) if ALL_STEPS or kinds[last - 1] in IN_EVERY_RUN]
    for last in visited:
        wrong = verdict_on(account_of_a_kill(place_at(url, tmp_path, has_inbox=has_inbox), last), BODIES)
        if has_inbox or kinds[last - 1] not in WINDOW:
            assert wrong == [], (last, kinds[last - 1])
        else:
            assert len(wrong) == 1, (last, kinds[last - 1], wrong)
            assert wrong[0].startswith("2 rows")
    with capsys.disabled():
        print(f"\nkills of a listener with a database over {pair}: {len(visited)} of {len(kinds)} steps visited")
