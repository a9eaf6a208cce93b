"""Counts and data kept for a message, and the cache of encounters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca.errors import MessageFormatError, ResourceAllocationError
from jmsjca.redelivery import Encounter, EncounterCache, Failure
from jmsjca.redelivery.encounter import UnsettledMessages


def counts(*delivery_counts):
    encounter = Encounter()
    return [encounter.count_arrival(count)[0] for count in delivery_counts]


def test_without_the_brokers_count_arrivals_are_counted():
    assert counts(None, None, None) == [1, 2, 3]
    assert counts(0, 0, 0) == [1, 2, 3]


def test_the_brokers_count_wins_where_it_is_greater():
    assert counts(2, 3, 4) == [1, 2, 3]
    assert counts(8, 9) == [7, 8]  # we were restarted


def test_our_own_count_wins_where_the_broker_forgot():
    assert counts(2, 2, 2, 9) == [1, 2, 3, 8]


@pytest.mark.parametrize("counted", [0, 1])
def test_what_was_put_off_is_not_counted(counted):
    encounter = Encounter()
    broker = 5
    assert encounter.count_arrival(broker) == (4, False)
    for _ in range(3):
        encounter.mark_returned()
        broker += counted
        assert encounter.count_arrival(broker) == (4, False)
    assert encounter.count_arrival(broker + 1) == (5, False)


def test_what_was_put_off_where_nobody_counts_is_not_counted():
    encounter = Encounter()
    assert encounter.count_arrival(None) == (1, False)
    encounter.mark_returned()
    assert encounter.count_arrival(None) == (1, False)
    assert encounter.count_arrival(None) == (2, False)


def test_a_first_delivery_that_is_put_off_is_not_counted():
    encounter = Encounter()
    encounter.mark_returned()
    assert encounter.count_arrival(2) == (0, False)
    assert encounter.count_arrival(3) == (1, False)


@pytest.mark.parametrize("counted", [0, 1])
def test_a_delay_is_over_when_the_broker_gives_the_message_back(counted):
    encounter = Encounter()
    assert encounter.count_arrival(5) == (4, False)
    encounter.mark_returned(waited=True)
    assert encounter.count_arrival(5 + counted) == (4, True)
    assert encounter.count_arrival(6 + counted) == (5, False)


def test_a_delay_is_not_over_if_somebody_else_saw_the_message_meanwhile():
    encounter = Encounter()
    encounter.count_arrival(5)
    encounter.mark_returned(waited=True)
    assert encounter.count_arrival(8) == (6, False)


def test_failures_elsewhere_count_where_the_broker_does_not_count_what_is_put_off():
    encounter = Encounter()
    encounter.count_arrival(5)
    encounter.mark_returned(waited=True, uncounted=True)
    assert encounter.count_arrival(8) == (7, False)
    encounter.mark_returned(uncounted=True)
    encounter.mark_return_failed()
    assert encounter.count_arrival(9) == (7, False)


def test_the_latest_putting_off_says_whether_the_delay_is_over():
    encounter = Encounter()
    encounter.count_arrival(None)
    encounter.mark_returned(waited=True)
    encounter.mark_returned()
    assert encounter.count_arrival(None) == (1, False)


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["fail", "put off", "hold"])), max_size=30))
def test_counts_never_fall_and_rise_with_each_failure_that_the_broker_counts(steps):
    encounter, broker, before, put_off = Encounter(), 1, 0, True
    for raised, ending in steps:
        broker += raised
        count, waited = encounter.count_arrival(broker)
        assert count >= before + (not put_off and raised > 0)
        assert not waited or count == before
        before, put_off = count, ending != "fail"
        if put_off:
            encounter.mark_returned(waited=ending == "hold")


def test_rollback_data_is_kept_replaced_and_forgotten():
    encounter = Encounter()
    encounter.set_rollback_data("a", "1")
    encounter.set_rollback_data("b", "2")
    encounter.set_rollback_data("a", "3")
    before = encounter.rollback_data
    assert before == {"a": "3", "b": "2"}
    encounter.set_rollback_data("b", None)
    encounter.set_rollback_data("nothing", None)
    assert encounter.rollback_data == {"a": "3"}
    assert before == {"a": "3", "b": "2"}


def test_rollback_data_has_a_bound():
    encounter = Encounter()
    encounter.set_rollback_data("k", "x" * 9_999)
    with pytest.raises(ResourceAllocationError, match="10001 characters; the maximum is 10000"):
        encounter.set_rollback_data("j", "")
    with pytest.raises(ResourceAllocationError):
        encounter.set_rollback_data("k", "x" * 10_000)
    assert encounter.rollback_data == {"k": "x" * 9_999}
    encounter.set_rollback_data("k", "short")
    encounter.set_rollback_data("j", "y" * 9_000)


def test_rollback_data_is_text():
    with pytest.raises(MessageFormatError, match="a is int"):
        Encounter().set_rollback_data("a", 5)


def raised(error):
    with pytest.raises(type(error)) as caught:
        raise error from KeyError("the cause")
    return caught.value


class UnspeakableError(Exception):
    def __str__(self):
        raise SystemError("no")


def test_an_exception_is_written_down():
    failure = Failure.of(raised(ValueError("what went wrong")))
    assert (failure.error_class, failure.message) == ("ValueError", "what went wrong")
    assert "KeyError: 'the cause'" in failure.stack_trace
    assert "in raised" in failure.stack_trace
    assert failure.stack_trace.endswith("ValueError: what went wrong\n")
    assert Failure.of(MessageFormatError("x")).error_class == "jmsjca.errors.MessageFormatError"


def test_an_exception_is_written_down_in_bounds():
    failure = Failure.of(raised(ValueError("x" * 10**6)))
    assert (len(failure.message), len(failure.stack_trace)) == (1_000, 10_000)


def deep(levels):
    if levels:
        deeper(levels - 1)
    raise ValueError("the bottom")


def deeper(levels):
    deep(levels)


def test_of_a_deep_stack_the_bottom_is_written_down():
    with pytest.raises(ValueError, match="bottom") as caught:
        deep(300)
    assert 'raise ValueError("the bottom")' in Failure.of(caught.value).stack_trace


def test_of_a_long_trace_the_end_is_written_down():
    with pytest.raises(ValueError, match="end") as caught:
        raise ValueError("the end") from KeyError("x" * 20_000)
    assert Failure.of(caught.value).stack_trace.endswith("ValueError: the end\n")


def test_an_exception_without_text_is_written_down():
    failure = Failure.of(raised(UnspeakableError()))
    assert failure.error_class.endswith("UnspeakableError")
    assert failure.message == "(its text cannot be had: SystemError)"
    assert "in raised" in failure.stack_trace


def test_what_no_protocol_can_carry_is_replaced():
    failure = Failure.of(raised(ValueError("a\ud800b\0c")))
    assert failure.message == r"a\ud800b\x00c"
    assert (failure.message + failure.stack_trace).encode()
    assert "\0" not in failure.stack_trace


@pytest.mark.parametrize("key", ["", ".", ".x", "x.", " x", "x-y", "\n"])
def test_data_without_the_name_of_a_property_is_refused(key):
    encounter = Encounter()
    with pytest.raises(MessageFormatError):
        encounter.set_rollback_data(key, "x")
    assert encounter.rollback_data == {}


class Model:
    """Two generations, written down as plainly as they can be."""

    def __init__(self, capacity):
        self.capacity, self.young, self.old = capacity, {}, {}

    def touch(self, name, value):
        if name not in self.young:
            self.young[name] = self.old.pop(name, value)
        found = self.young[name]
        if len(self.young) > self.capacity:
            self.young, self.old = {}, self.young
        return found


@given(st.integers(1, 4), st.lists(st.tuples(st.sampled_from("abcdefgh"), st.booleans()), max_size=80))
def test_cache_is_as_its_model(capacity, steps):
    cache, model = EncounterCache(capacity), Model(capacity)
    for name, only_looking in steps:
        if only_looking:
            known = name in model.young or name in model.old
            assert cache.find(name) is (model.touch(name, None) if known else None)
        else:
            encounter = cache.encounter(name)
            assert model.touch(name, encounter) is encounter
        assert len(cache) == len(model.young) + len(model.old) <= 2 * capacity + 1


@given(st.integers(1, 5), st.lists(st.integers(0, 12), max_size=100))
def test_the_last_messages_are_always_remembered(capacity, ids):
    cache = EncounterCache(capacity)
    seen = {}
    for number in ids:
        seen[number] = cache.encounter(str(number))
    for number in list(dict.fromkeys(reversed(ids)))[:capacity]:
        assert cache.find(str(number)) is seen[number]


def test_five_thousand_are_remembered_and_never_much_more_than_twice_as_many():
    cache = EncounterCache()
    first = [cache.encounter(str(number)) for number in range(5000)]
    assert all(cache.find(str(number)) is first[number] for number in range(5000))
    for number in range(100_000):
        cache.encounter(f"other {number}")
        assert len(cache) <= 10_001
    assert cache.find("0") is None


def test_what_is_seen_again_outlives_what_is_not():
    cache = EncounterCache(3)
    kept = cache.encounter("kept")
    cache.encounter("forgotten")
    for number in range(50):
        cache.encounter(str(number))
        assert cache.encounter("kept") is kept
    assert cache.find("forgotten") is None


def test_what_is_not_there_is_not_remembered_by_looking_for_it():
    cache = EncounterCache(3)
    assert cache.find("a") is None
    assert len(cache) == 0
    assert isinstance(cache.encounter("a"), Encounter)
    assert len(cache) == 1


def test_long_ids_are_told_apart_and_take_no_room():
    cache = EncounterCache(3)
    ids = ["x" * 1_000_000 + end for end in ("a", "b", "\ud800")]
    encounters = [cache.encounter(message_id) for message_id in ids]
    assert [cache.find(message_id) for message_id in ids] == encounters
    assert len({id(encounter) for encounter in encounters}) == 3
    assert all(len(key) <= 256 for key in cache._young)


@pytest.mark.parametrize("capacity", [0, -1])
def test_capacity_is_one_at_least(capacity):
    with pytest.raises(ValueError, match=f"1 at least, not {capacity}"):
        EncounterCache(capacity)


def test_unsettled_messages_may_look_new_after_the_first_connection():
    unsettled = UnsettledMessages()
    unsettled.begin_connection()
    unsettled.add(["a"])
    assert not unsettled.may_look_new
    unsettled.begin_connection()
    assert unsettled.may_look_new
    assert "a" in unsettled
    unsettled.discard(["a", "b"])
    assert not unsettled.may_look_new


def test_the_latest_5000_unsettled_messages_are_remembered():
    unsettled = UnsettledMessages()
    unsettled.add(map(str, range(5000)))
    unsettled.add(["0", "more"])
    assert [name in unsettled for name in ("0", "1", "2", "more")] == [True, False, True, True]
