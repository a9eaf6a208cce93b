"""Which messages are remembered."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca.redelivery import Encounter, EncounterCache


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
