"""A sample of the broker kills, small enough for every test run."""

import pytest

from tests.torture import confirmed_kills
from tests.torture.broker_kills import KILLS, run


@pytest.mark.parametrize(("pair", "kills"), [("artemis-amqp", 2), ("activemq-stomp", 1)])
def test_kills_of_the_broker_lose_and_double_nothing(pair, kills, own_broker, tmp_path, capsys):
    kind, protocol = pair.split("-")
    report = run(own_broker(kind), protocol, kills, seed=20, folder=tmp_path)
    with capsys.disabled():
        print(f"\nkills {kills} of {KILLS} (sample): {report}")
    assert report.good, "\n".join([str(report), *report.verdict.faults, *report.stalled, report.complaints])


@pytest.mark.parametrize("kills", [2, pytest.param(KILLS, marks=pytest.mark.torture)])
def test_kills_of_rabbitmq_lose_nothing_that_was_confirmed(kills, own_broker, capsys):
    """Nor does it come again: the queue confirms what its log has."""
    account = confirmed_kills.run(own_broker("rabbitmq4"), "amqp", kills)
    with capsys.disabled():
        print(f"\nkills {kills} of {KILLS}: {len(account.sent)} confirmed, {len(account.in_doubt)} in doubt")
    assert (account.lost, account.doubled) == (set(), set())
