"""A delivery leaves no reference cycles, threads, slots or held messages behind."""

import threading
from weakref import ref

import pytest

from tests.unit.inbound.deliveries import Performance, depth, endpoint_of, put, terms, until

pytestmark = pytest.mark.usefixtures("no_collector")

MODES = ["serial", "sync", "cc"]


@pytest.mark.parametrize("outcome", ["commit", "rollback", "reply", "data"])
@pytest.mark.parametrize(("mode", "hold"), [("serial", False), ("sync", False), ("cc", False), ("sync", True)])
def test_no_circle_keeps_a_body(connected, recorder, mode, hold, outcome):
    link = connected()
    seen = []

    def handler(message, session):
        seen.append(ref(message))
        if outcome == "rollback" and len(seen) == 1:
            message.user_rollback_data["why"] = "not yet"
            message.set_rollback_only()
        if outcome == "reply":
            session.create_text_message("x")
        message.acknowledge()

    performance = Performance(endpoint_of(handler, terms(mode, hold_until_ack=hold), recorder), link)
    put(link, "a")
    for _ in range(2 if outcome == "rollback" else 1):
        recorder.outcomes.get(timeout=30)
    performance.stop()
    del performance
    assert [message() for message in seen] == [None] * len(seen)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("hold", [False, True])
def test_no_thread_stays(connected, recorder, mode, hold):
    if hold and mode == "serial":
        pytest.skip("serial delivery holds nothing")
    before = set(threading.enumerate())
    link = connected()
    performance = Performance(endpoint_of(lambda message: None, terms(mode, hold_until_ack=hold)), link)
    put(link, *"abcdef")
    until(lambda: depth(link).ready == 0)
    performance.stop()
    until(lambda: not set(threading.enumerate()) - before)
    assert depth(link).held == 0


@pytest.mark.parametrize("mode", ["sync", "cc"])
def test_stop_with_a_thousand_held_messages(connected, recorder, mode):
    link = connected()
    held = []

    def handler(message):
        held.append(message)

    endpoint = endpoint_of(handler, terms(mode, hold_until_ack=True, max_outstanding=1000), recorder)
    performance = Performance(endpoint, link)
    put(link, *map(str, range(1000)))
    until(lambda: len(held) == 1000)
    settlements = [message.acknowledge() for message in held[:300]]
    for settlement in settlements[:10]:
        settlement.wait(30)
    performance.stop()
    outcomes = [settlement.wait(0).value for settlement in settlements]
    assert set(outcomes) == {"committed"}
    assert (depth(link).ready, depth(link).held) == (700, 0)
    assert {message.acknowledge().wait(0).value for message in held[300:]} == {"rolled back"}
