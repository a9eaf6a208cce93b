"""Transactions, inbox and outbox on PostgreSQL: their unit tests again, and a listener that is killed."""

import itertools

import pytest
import sqlalchemy as sa

from tests.unit.conftest import adapter, connected, recorder  # noqa: F401  # fixtures
from tests.unit.inbound.test_container_transactions import METADATA, TestOneHandler  # noqa: F401  # cases
from tests.unit.inbound.test_inbox import (  # noqa: F401  # a fixture, and cases
    TestAfterAFailedCommitOfTheBroker,
    TestHistory,
    TestInDoubt,
    TestNoDuplicate,
    inbox,
)
from tests.unit.transactions.test_outbox import (  # noqa: F401  # fixtures
    TestAdd,
    TestRelay,
    broker,
    clock,
    factory,
    outbox,
    relay,
)
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
_numbers = itertools.count()


class TestAddedOnPostgreSQL(TestAdd):
    test_an_asynchronous_session = None  # it has a file of SQLite


TestAdd = None  # the case above has them


@pytest.fixture
def engine(postgresql):
    """An engine whose tables are in a schema of their own."""
    schema = f"test{next(_numbers)}"
    whole = sa.create_engine(postgresql.url())
    with whole.begin() as connection:
        connection.execute(sa.schema.CreateSchema(schema))
    whole.dispose()
    options = {"options": f"-csearch_path={schema}"}
    engine = sa.create_engine(postgresql.url(), connect_args=options, poolclass=sa.NullPool)
    METADATA.create_all(engine)
    yield engine
    engine.dispose()


@pytest.mark.parametrize("has_inbox", [True, False], ids=["inbox", "no inbox"])
def test_a_listener_killed_leaves_what_it_leaves_on_sqlite(postgresql, tmp_path, has_inbox, capsys):
    def place(name):
        (tmp_path / name).mkdir()
        return Place(f"embedded://{tmp_path}/{name}/broker.db", postgresql.url(), "q", BODIES, has_inbox)

    whole = place("whole")
    prepare(whole)
    kinds = steps_of(whole)
    visited = chosen_steps(kinds, 0)
    for last in visited:
        wrong = verdict_on(account_of_a_kill(place(str(last)), last), BODIES)
        if has_inbox or kinds[last - 1] not in WINDOW:
            assert wrong == [], (last, kinds[last - 1])
        else:
            assert [text.partition(" of ")[0] for text in wrong] == ["2 rows"], (last, kinds[last - 1], wrong)
    with capsys.disabled():
        print(f"\nkills of a listener with PostgreSQL: {len(visited)} of {len(kinds)} steps visited")
