"""The account must see every way in which a run can go wrong."""

from collections import Counter

import pytest

from jmsjca.demo.account import balance

SENT = {"1", "2", "3", "4"}


def take(*, stored="123", published="123", dead="4", waiting="", sent=SENT, poison=frozenset("4")):
    found = {"stored": stored, "published": published, "dead": dead, "waiting": waiting}
    return balance(set(sent), set(poison), **{place: Counter(ids) for place, ids in found.items()})


def test_a_run_without_fault_balances():
    assert take() == {
        "sent": 4,
        "processed": 3,
        "dead_lettered": 1,
        "unprocessed": 0,
        "lost": 0,
        "duplicated": 0,
        "unexpected": 0,
        "wrongly_dead_lettered": 0,
        "balanced": True,
    }


@pytest.mark.parametrize(
    ("fault", "figure"),
    [
        ({"stored": "12"}, "lost"),
        ({"published": "12"}, "lost"),
        ({"dead": ""}, "lost"),
        ({"stored": "12", "published": "12", "waiting": "3"}, "unprocessed"),
        ({"waiting": "9"}, "unexpected"),
        ({"stored": "1233"}, "duplicated"),
        ({"published": "1233"}, "duplicated"),
        ({"dead": "44"}, "duplicated"),
        ({"dead": "43"}, "duplicated"),
        ({"stored": "1239", "published": "1239"}, "unexpected"),
        ({"poison": ""}, "wrongly_dead_lettered"),
        ({"poison": "34"}, "wrongly_dead_lettered"),
    ],
)
def test_every_fault_shows(fault, figure):
    account = take(**fault)
    assert account[figure] == 1
    assert not account["balanced"]
