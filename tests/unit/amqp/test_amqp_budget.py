"""How many messages are asked for, by the sizes of those that came."""

from hypothesis import given
from hypothesis import strategies as st

from jmsjca.providers.amqp.links.credit import ByteBudget

MOST = 1000
SIZES = st.integers(1, 3 * MOST)


def test_the_first_one_is_asked_for_alone():
    assert ByteBudget(MOST).messages_that_fit(0) == 1


@given(st.lists(SIZES, min_size=1))
def test_one_may_always_come_when_nothing_is_here(sizes):
    budget = ByteBudget(MOST)
    for size in sizes:
        budget.on_messages([size])
        assert budget.messages_that_fit(0) >= 1


@given(SIZES, st.lists(st.booleans(), max_size=50))
def test_what_waits_and_what_is_on_its_way_fit_where_all_are_of_one_size(size, received):
    """Whatever is received in between."""
    budget, ready, asked = ByteBudget(MOST), 0, 1
    for receive in received:
        if receive and ready:
            ready -= 1
        elif asked:
            ready, asked = ready + 1, asked - 1
            budget.on_messages([size])
        asked = max(asked, budget.messages_that_fit(ready * size))
        assert (ready + asked) * size <= max(MOST, size)


@given(SIZES)
def test_a_large_one_is_forgotten_by_and_by(large):
    budget = ByteBudget(MOST)
    budget.on_messages([large])
    for _ in range(100):
        budget.on_messages([1])
    assert budget.messages_that_fit(0) > MOST // 10


@given(st.lists(SIZES, min_size=1), SIZES)
def test_a_larger_one_counts_at_once(sizes, larger):
    budget = ByteBudget(MOST)
    budget.on_messages(sizes)
    budget.on_messages([larger, 1])
    assert budget.messages_that_fit(0) <= max(MOST // larger, 1)
