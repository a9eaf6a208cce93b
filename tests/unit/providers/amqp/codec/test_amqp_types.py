"""The types of AMQP in each of their encodings, as proton reads and writes them."""

import proton
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca.errors import MessageFormatError
from jmsjca.messages import Byte, Char, Double, Float, Int, Long, Short
from jmsjca.providers.common.amqp_types import (
    MALFORMED,
    MAX_DEPTH,
    Described,
    RawDecimal,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    read,
    write,
)
from tests.unit.providers.amqp.codec.encodings import DAMAGED, FORMS
from tests.unit.providers.amqp.codec.proton_sections import owned


def same(one, other):
    """Equal, and of equal types, to the innermost."""
    if isinstance(one, dict):
        one, other = [*one.items()], [*other.items()]
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and (one == other or one != one)  # noqa: PLR0124  # not-a-number


@pytest.mark.parametrize(("form", "value"), FORMS)
def test_each_form_is_read(form, value):
    raw = bytes.fromhex(form)
    found, end = read(raw)
    assert same(found, value)
    assert end == len(raw)


@pytest.mark.parametrize(("form", "value"), FORMS)
def test_proton_reads_each_form_alike(form, value):
    assert plain(from_proton(bytes.fromhex(form))) == plain(value)


@pytest.mark.parametrize(("form", "value"), [(form, value) for form, value in FORMS if form[0] not in "ef"])
def test_each_value_is_written_so_that_proton_reads_it(form, value):
    raw = write(value)
    assert plain(from_proton(raw)) == plain(value)
    assert same(read(raw)[0], value)
    assert len(raw) <= len(form) // 2 or value == "\U0001f600"  # which is a text then


@pytest.mark.parametrize("form", DAMAGED.values(), ids=DAMAGED)
def test_what_is_no_value_is_refused(form):
    with pytest.raises(MALFORMED):
        read_whole(bytes.fromhex(form))


def read_whole(raw):
    """Whoever reads compares where a value ends."""
    _, end = read(raw)
    if end != len(raw):
        raise MessageFormatError("it is cut off")


def from_proton(raw):
    data = proton.Data()
    assert data.decode(raw) == len(raw)
    data.rewind()
    data.next()
    return owned(data.get_object())


def plain(value):
    """The value without the types that proton and ours call differently."""
    if isinstance(value, proton.Array):
        described = value.descriptor is not proton.UNDESCRIBED
        return [[value.descriptor, plain(v)] if described else plain(v) for v in value.elements]
    if isinstance(value, proton.Described | Described):
        return [plain(value.descriptor), plain(value.value)]
    if isinstance(value, RawDecimal):
        return int.from_bytes(value.encoded, "big")
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, proton.decimal128):
        return int.from_bytes(value, "big")
    return {plain(k): plain(v) for k, v in value.items()} if isinstance(value, dict) else value


def bits(number):
    return st.integers(-(1 << number - 1), (1 << number - 1) - 1)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
words = st.text(st.characters(max_codepoint=127), max_size=300).map(Symbol)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    *(bits(size).map(kind) for size, kind in ((8, Byte), (16, Short), (32, Int), (64, Long), (64, Timestamp))),
    *(st.integers(0, (1 << size) - 1).map(kind) for size, kind in ((8, UByte), (16, UShort), (32, UInt), (64, ULong))),
    st.floats(width=32).map(Float),
    st.floats().map(Double),
    st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]).map(Char),
    texts,
    words,
    st.binary(max_size=300),
    st.uuids(),
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(texts, inner, max_size=5)
        | st.builds(Described, st.integers(0, 255).map(ULong) | words, inner)
    ),
    max_leaves=20,
)


@given(values)
def test_what_is_written_is_read_again(value):
    raw = write(value)
    found, end = read(raw)
    assert same(found, value)
    assert end == len(raw)


@given(st.lists(st.integers() | st.booleans() | texts, max_size=300))
def test_plain_numbers_are_ints_or_longs_by_their_size(numbers):
    if any(abs(number) >= 1 << 63 for number in numbers if isinstance(number, int)):
        with pytest.raises(MessageFormatError):
            write(numbers)
        return
    for found, number in zip(read(write(numbers))[0], numbers, strict=True):
        assert found == number
        if type(number) is int:
            assert type(found) is (Int if -(1 << 31) <= number < 1 << 31 else Long)


@pytest.mark.parametrize("value", [object(), {1, 2}, 1j, [object()], 1 << 64])
def test_what_amqp_has_no_type_for_is_refused(value):
    with pytest.raises(MessageFormatError):
        write(value)


def nested(depth, make):
    value = []
    for _ in range(depth - 1):
        value = make(value)
    return value


@pytest.mark.parametrize(
    "make", [lambda value: [value], lambda value: {"a": value}, lambda value: Described(ULong(1), value)]
)
def test_nesting_is_bounded(make):
    deepest = nested(MAX_DEPTH, make)
    assert read(write(deepest))[0] == deepest
    with pytest.raises(MessageFormatError, match="deeper"):
        write(make(deepest))
    with pytest.raises(MessageFormatError, match="deeper"):
        write(nested(100_000, make))


@pytest.mark.parametrize("value", [Char("\ud800"), "\ud800", {"\ud800": 1}, Symbol("é")])
def test_what_is_no_text_is_not_written(value):
    with pytest.raises(ValueError, match="codec"):
        write(value)


@pytest.mark.parametrize("size", [0, 1, 125, 126, 253, 254, 255, 256, 257, 10_000])
@pytest.mark.parametrize("make", ["x", b"x", Symbol("x"), [None], [True, "x"]], ids=repr)
def test_every_size_is_written_as_proton_reads_it(make, size):
    value = type(make)(make * size)
    raw = write(value)
    assert same(read(raw)[0], value)
    assert from_proton(raw) == value
    assert same(read(write({"a": value}))[0], {"a": value})


SIGNED = [(Int, proton.int32), (Long, int)]
UNSIGNED = [(UInt, proton.uint), (ULong, proton.ulong)]


@pytest.mark.parametrize("value", [0, 1, 127, 128, 255, 256, -1, -128, -129])
def test_numbers_take_no_more_than_they_need(value):
    """One byte where one is enough, as proton writes them."""
    for ours, protons in SIGNED + UNSIGNED * (value >= 0):
        data = proton.Data()
        data.put_object(protons(value))
        assert write(ours(value)) == bytes(data.encode())
