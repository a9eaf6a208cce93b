"""A sample of the broker kills, small enough for every test run."""

import pytest

from tests.torture import confirmed_kills
from tests.torture.broker_kills import KILLS, run

LONG = [pytest.mark.torture, pytest.mark.timeout(3600)]


@pytest.mark.parametrize(("pair", "kills"), [("artemis-amqp", 1), ("activemq-stomp", 1)])
def test_kills_of_the_broker_lose_and_double_nothing(pair, kills, own_broker, tmp_path, capsys):
    kind, protocol = pair.split("-")
    report = run(own_broker(kind), protocol, kills, seed=20, folder=tmp_path)
    with capsys.disabled():
        print(f"\nkills {kills} of {KILLS} (sample): {report}")
    assert report.good, "\n".join([str(report), *report.verdict.faults, *report.stalled, report.complaints])


@pytest.mark.parametrize(
    ("protocol", "kills"),
    [("amqp", 1), *(pytest.param(protocol, KILLS, marks=LONG) for protocol in ("amqp", "stomp"))],
)
def test_kills_of_rabbitmq_lose_nothing_that_was_confirmed(protocol, kills, own_broker, capsys):
    """Nor does it come again over AMQP: a quorum queue confirms what its log has."""
    account = confirmed_kills.run(own_broker("rabbitmq4"), protocol, kills)
    with capsys.disabled():
        told = f"{len(account.sent)} confirmed, {len(account.in_doubt)} in doubt"
        print(f"\nkills over {protocol} {kills} of {KILLS}: {told}")
    assert account.lost == set()
    if protocol == "amqp":  # over STOMP acknowledgements are confirmed before they are written down
        assert account.doubled == set()
