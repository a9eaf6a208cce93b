"""An empty epoch costs a micro-batch: they must become rare, and a full one must not wait."""

from jmsjca.spark.reader import Rest


def looks_left_out(rest: Rest) -> int:
    count = 0
    while rest.is_due():
        count += 1
    return count


def test_nothing_is_left_out_at_first() -> None:
    assert looks_left_out(Rest()) == 0


def test_each_empty_epoch_lengthens_the_rest_up_to_a_bound() -> None:
    rest = Rest()
    lengths = []
    for _ in range(7):
        rest.note(0)
        lengths.append(looks_left_out(rest))
    assert lengths == [1, 3, 7, 15, 31, 31, 31]


def test_an_epoch_with_messages_ends_the_rest() -> None:
    rest = Rest()
    rest.note(0)
    rest.note(0)
    rest.note(5)
    assert looks_left_out(rest) == 0
    rest.note(0)
    assert looks_left_out(rest) == 1
