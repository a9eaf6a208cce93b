"""The states of an activation."""

import threading

from hypothesis import given
from hypothesis import strategies as st

from jmsjca.inbound.lifecycle import ActivationState

TABLE = {
    "Down": {"start": "Connecting"},
    "Connecting": {"connected": "Up", "stop": "Disconnecting", "ended": "Down"},
    "Up": {"broken": "Connecting", "stop": "Disconnecting", "ended": "Down"},
    "Disconnecting": {"ended": "Down"},
}


@given(st.lists(st.sampled_from(["start", "connected", "broken", "stop", "ended"])))
def test_what_happens_leads_where_the_table_says(events):
    told = []
    state = ActivationState(told.append)
    expected = ["Down"]
    for event in events:
        following = TABLE[expected[-1]].get(event)
        assert state.fire(event, "run") is (following is not None)
        expected += [following] if following else []
        assert state.status == expected[-1]
    assert told == expected[1:]


def test_what_happens_to_an_earlier_run_means_nothing():
    state = ActivationState(lambda status: None)
    for event in ("start", "connected", "stop", "ended"):
        state.fire(event, "first")
    state.fire("start", "second")
    assert not state.fire("connected", "first")
    assert not state.fire("ended", "first")
    assert (state.status, state.current_run) == ("Connecting", "second")


def test_who_is_told_may_let_more_happen_and_is_told_in_order():
    told = []

    def tell(status):
        told.append(f"<{status}")
        if status == "Up":
            state.fire("stop", "run")
        told.append(f"{status}>")

    state = ActivationState(tell)
    state.fire("start", "run")
    state.fire("connected", "run")
    assert told == ["<Connecting", "Connecting>", "<Up", "Up>", "<Disconnecting", "Disconnecting>"]


def test_what_happens_while_another_thread_tells_is_told_by_that_one_and_waits_for_nothing():
    told, telling, go_on = [], threading.Event(), threading.Event()

    def tell(status):
        if status == "Connecting":
            telling.set()
            assert go_on.wait(30)
        told.append((status, threading.current_thread()))

    state = ActivationState(tell)
    teller = threading.Thread(target=state.fire, args=("start", "run"))
    teller.start()
    assert telling.wait(30)
    state.fire("connected", "run")
    assert (state.status, told) == ("Up", [])
    go_on.set()
    teller.join(30)
    assert told == [("Connecting", teller), ("Up", teller)]
