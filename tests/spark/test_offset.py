"""The offset of a stream."""

import json

from hypothesis import given
from hypothesis import strategies as st

from jmsjca.spark.reader import Offset


def test_the_first_offset_is_always_the_same_and_names_no_generation() -> None:
    assert Offset().to_json() == {"v": 1, "epoch": 0}
    assert Offset.from_json({"v": 1, "epoch": 0}) == Offset()


def test_each_first_epoch_begins_a_generation_and_the_next_ones_keep_it() -> None:
    first, other = Offset().next(2, 10), Offset().next(2, 10)
    assert first.gen != other.gen
    assert first.next(3, 7) == Offset(2, first.gen, 3, 7)


@given(
    st.builds(Offset, st.integers(1, 10**9), st.uuids().map(lambda u: u.hex), st.integers(1, 64), st.integers(1, 10**6))
)
def test_spark_keeps_it_as_text(offset: Offset) -> None:
    assert Offset.from_json(json.loads(json.dumps(offset.to_json()))) == offset


@given(st.integers(1, 64), st.integers(0, 1000))
def test_the_partitions_share_the_rows(parts: int, more: int) -> None:
    offset = Offset().next(parts, parts + more)
    shares = [offset.quota(partition) for partition in range(parts)]
    assert sum(shares) == parts + more
    assert max(shares) - min(shares) <= 1
    assert min(shares) >= 1
