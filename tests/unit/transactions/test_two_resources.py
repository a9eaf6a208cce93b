"""A listener of two resources, killed at each step, over an embedded broker and SQLite in files."""

import pytest
import sqlalchemy as sa

from tests.unit.transactions.two_resources import (
    ROWS,
    WINDOW,
    Place,
    account_of_a_kill,
    chosen_steps,
    prepare,
    steps_of,
    verdict_on,
)

BODIES = ("a", "b")
SAMPLE = 3


def place_in(folder, **fields):
    folder.mkdir(exist_ok=True)
    return Place(f"embedded://{folder}/broker.db", f"sqlite:///{folder}/rows.db", "q", BODIES, **fields)


def visit(tmp_path, size, **fields):
    """Kill at steps; yield each step, its kind, and what is wrong then."""
    whole = place_in(tmp_path / "whole", **fields)
    prepare(whole)
    kinds = steps_of(whole)
    for last in chosen_steps(kinds, size):
        place = place_in(tmp_path / str(last), **fields)
        yield last, kinds, verdict_on(account_of_a_kill(place, last), BODIES)


def report(capsys, name, visited):
    total = len(visited[0][1])
    with capsys.disabled():
        print(f"\nkills of a listener with a database, {name}: {len(visited)} of {total} steps visited")


def test_with_an_inbox_all_three_agree_exactly_once(tmp_path, capsys):
    visited = list(visit(tmp_path, SAMPLE, has_inbox=True))
    report(capsys, "inbox", visited)
    assert [(last, kinds[last - 1], wrong) for last, kinds, wrong in visited if wrong] == []


def test_without_one_there_is_the_documented_window_and_nothing_else(tmp_path, capsys):
    visited = list(visit(tmp_path, SAMPLE, has_inbox=False))
    report(capsys, "no inbox", visited)
    for last, kinds, wrong in visited:
        kind = kinds[last - 1]
        if kind in WINDOW:
            assert len(wrong) == 1, (last, kind, wrong)
            assert wrong[0].startswith("2 rows"), (last, kind, wrong)
        else:
            assert wrong == [], (last, kind)
    assert {kinds[last - 1] for last, kinds, _ in visited} & WINDOW


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
    with places[0].engine().connect() as connection:
        assert connection.scalars(sa.select(ROWS.c.text)).all() == ["a"] * count
