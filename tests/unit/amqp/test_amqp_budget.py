"""How many messages are asked for, by the sizes of those that came."""

from hypothesis import given
from hypothesis import strategies as st

from jmsjca.providers.amqp.links.credit import Budget

MOST = 1000
SIZES = st.integers(1, 3 * MOST)


def test_the_first_one_is_asked_for_alone():
    assert Budget(MOST).room(0) == 1


@given(st.lists(SIZES, min_size=1))
def test_one_may_always_come_when_nothing_is_here(sizes):
    budget = Budget(MOST)
    for size in sizes:
        budget.arrived([size])
        assert budget.room(0) >= 1


@given(SIZES, st.lists(st.booleans(), max_size=50))
def test_what_waits_and_what_is_on_its_way_fit_where_all_are_of_one_size(size, received):
    """Whatever is received in between."""
    budget, ready, asked = Budget(MOST), 0, 1
    for receive in received:
        if receive and ready:
            ready -= 1
        elif asked:
            ready, asked = ready + 1, asked - 1
            budget.arrived([size])
        asked = max(asked, budget.room(ready * size))
        assert (ready + asked) * size <= max(MOST, size)


@given(SIZES)
def test_a_large_one_is_forgotten_by_and_by(large):
    budget = Budget(MOST)
    budget.arrived([large])
    for _ in range(100):
        budget.arrived([1])
    assert budget.room(0) > MOST // 10


@given(st.lists(SIZES, min_size=1), SIZES)
def test_a_larger_one_counts_at_once(sizes, larger):
    budget = Budget(MOST)
    budget.arrived(sizes)
    budget.arrived([larger, 1])
    assert budget.room(0) <= max(MOST // larger, 1)
