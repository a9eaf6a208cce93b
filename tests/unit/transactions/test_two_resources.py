"""A listener of two resources, killed at each step, over an embedded broker and SQLite in files."""

import pytest
import sqlalchemy as sa

from tests.unit.transactions.failures import BETWEEN, cases_of
from tests.unit.transactions.two_resources import (
    ROWS,
    Place,
    account_of_a_kill,
    chosen_steps,
    prepare,
    steps_of,
    verdict_on,
)

BODIES = ("a", "b")
SAMPLE = 3


def place_in(folder, *, is_file=False, **fields):
    folder.mkdir(exist_ok=True)
    broker = f"embedded://{folder}/broker.db"
    return Place(broker, broker if is_file else f"sqlite:///{folder}/rows.db", "q", BODIES, **fields)


def visit(tmp_path, size, **fields):
    """Kill at steps; yield each step, its kind, and what is wrong then."""
    whole = place_in(tmp_path / "whole", **fields)
    prepare(whole)
    kinds = steps_of(whole)
    for last in chosen_steps(kinds, size):
        place = place_in(tmp_path / str(last), **fields)
        yield last, kinds, verdict_on(account_of_a_kill(place, last), BODIES)


@pytest.mark.parametrize(
    "case",
    cases_of("test_a_killed_listener_leaves_what_its_case_says"),
    ids=lambda case: f"{case.listener}, {case.database}",
)
def test_a_killed_listener_leaves_what_its_case_says(tmp_path, capsys, case):
    is_file = case.database == "the broker's file"
    visited = list(visit(tmp_path, SAMPLE, is_file=is_file, **case.fields))
    with capsys.disabled():
        name = f"{case.listener}, {case.database}"
        print(f"\nkills of a listener with {name}: {len(visited)} of {len(visited[0][1])} steps visited")
    told = [(last, kinds[last - 1], case.fault(kinds[last - 1], wrong)) for last, kinds, wrong in visited]
    assert [found for found in told if found[2]] == []
    assert {kind for _, kind, _ in told} >= BETWEEN


@pytest.mark.parametrize(
    ("fault", "has_inbox", "found"),
    [("inbox row outside the transaction", True, "0 rows"), ("settle before commit", False, "0 rows")],
)
def test_a_planted_fault_loses_something(tmp_path, fault, has_inbox, found):
    visited = visit(tmp_path, 0, has_inbox=has_inbox, fault=fault)
    assert any(text.startswith(found) for _, _, wrong in visited for text in wrong)


@pytest.mark.parametrize(("fault", "count"), [("", 2), ("one endpoint for all", 1)])
def test_a_key_without_the_endpoint_loses_the_row_of_the_second_listener(tmp_path, fault, count):
    places = [
        place_in(tmp_path, has_inbox=True, duplicate_ids=True, fault=fault)._replace(name=name, bodies=("a",))
        for name in "qr"
    ]
    for place in places:
        prepare(place)
    for place in places:
        steps_of(place)
    engine = places[0].engine()
    with engine.connect() as connection:
        assert connection.scalars(sa.select(ROWS.c.text)).all() == ["a"] * count
    engine.dispose()
