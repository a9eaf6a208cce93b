"""ObjectMessage: never unpickled implicitly, and only with allowed classes."""

import ast
import copyreg
import pickle
import threading
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jmsjca
from jmsjca import ObjectMessage
from jmsjca.errors import MessageFormatError, MessageNotWriteableError
from jmsjca.messages.object_message import plain_data_of
from tests.unit.messages.pickled_objects import CALLS, GADGETS, HERE, Colour, Order, bomb, named, nested_tuple, text

ALLOWED = frozenset({("decimal", "Decimal")})
OURS = frozenset({(HERE, "Order"), (HERE, "Order.Line"), (HERE, "Colour")})
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(), inner, max_size=4)
        | st.tuples(inner, inner)
        | st.sets(st.integers())
    ),
)


def load(pickled: bytes, allowed=ALLOWED, **bounds: int) -> object:
    return ObjectMessage.from_pickled(pickled).get_object(allowed, **bounds)


def test_object_is_pickled_when_it_is_given():
    order = Order(1, parts=["a"])
    message = ObjectMessage(order)
    order.parts.append("b")
    assert message.get_object(OURS) == Order(1, parts=["a"])
    message.body = order
    order.parts.append("c")
    assert message.get_object(OURS) == Order(1, parts=["a", "b"])


def test_each_reading_gives_an_object_of_its_own():
    message = ObjectMessage([1])
    assert message.get_object(ALLOWED) == [1]
    assert message.get_object(ALLOWED) is not message.get_object(ALLOWED)


def test_bytes_are_an_object_like_any_other():
    message = ObjectMessage(pickle.dumps(1))
    assert message.get_object(ALLOWED) == pickle.dumps(1)


def test_body_is_refused_and_the_remedy_told():
    message = ObjectMessage({"a": 1})
    for read in (lambda: message.body, lambda: message.get_body(dict), lambda: message.get_body(object)):
        with pytest.raises(MessageFormatError, match=r"get_object\(allowed="):
            read()
    assert not message.is_body_assignable_to(dict)


def test_no_object():
    message = ObjectMessage()
    assert (message.body, message.pickled, message.get_object(ALLOWED), message.get_object(frozenset())) == (None,) * 4


def test_pickle_is_kept_as_it_is():
    for pickled in (b"", b"cos\nsystem\n(S'x'\ntR.", b"\xac\xed\0\5 what Java writes", pickle.dumps(1)):
        assert ObjectMessage.from_pickled(pickled).pickled == pickled


def test_received_message_is_read_only_until_it_is_cleared():
    message = ObjectMessage(1)
    message._freeze()
    with pytest.raises(MessageNotWriteableError):
        message.body = 2
    assert message.get_object(ALLOWED) == 1
    message.clear_body()
    assert message.pickled is None
    message.body = 2
    assert message.get_object(ALLOWED) == 2


@pytest.mark.parametrize("value", [lambda: None, (x for x in ()), open])
def test_what_cannot_be_pickled(value):
    if value is open:
        assert ObjectMessage(open).pickled
        return
    with pytest.raises(MessageFormatError, match="cannot be pickled"):
        ObjectMessage(value)


@pytest.mark.parametrize("nothing", [frozenset(), set(), {}.keys()])
def test_the_empty_set_allows_nothing(nothing):
    with pytest.raises(MessageFormatError, match="Nothing is allowed"):
        ObjectMessage(1).get_object(nothing)


@given(PLAIN)
def test_plain_data_needs_no_names(value):
    assert ObjectMessage(value).get_object(ALLOWED) == value


@pytest.mark.parametrize(
    ("value", "allowed"),
    [
        (Decimal("1.5"), ALLOWED),
        ([Decimal(1), {"a": Decimal(2)}], ALLOWED),
        (Order(1, Colour.RED, ["a"]), OURS),
        (datetime(2026, 1, 1, tzinfo=UTC), {("datetime", name) for name in ("datetime", "timezone", "timedelta")}),
    ],
)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_what_is_listed_is_made(value, allowed, protocol):
    encode = {("_codecs", "encode")}  # the name that old protocols write bytes with
    assert load(pickle.dumps(value, protocol), allowed | encode) == value


@pytest.mark.parametrize("module", ["builtins", "__builtin__"])
def test_a_member_of_an_enumeration_that_python_3_11_2_has_pickled(module):
    pickled = b"\x80\x04" + named(module, "getattr") + named(HERE, "Colour") + text("RED") + b"\x86R."
    assert load(pickled, {(HERE, "Colour")}) is Colour.RED


@pytest.mark.parametrize(
    ("owner", "name"),
    [("Order", "trusted"), ("Order", "__init__"), ("Colour", "__class__"), ("Colour", "mro"), ("Colour", "BLUE")],
)
def test_other_attributes_cannot_be_reached(owner, name):
    pickled = b"\x80\x04" + named("builtins", "getattr") + named(HERE, owner) + text(name) + b"\x86R."
    with pytest.raises(MessageFormatError, match="no member of an allowed enumeration"):
        load(pickled, OURS)


def test_a_class_within_a_class_has_a_name_of_its_own():
    lines = [Order.Line("a")] * 3
    assert ObjectMessage(lines).get_object({(HERE, "Order.Line")}) == lines
    with pytest.raises(MessageFormatError, match="not among the allowed"):
        ObjectMessage(lines).get_object({(HERE, "Order"), (HERE, "Line")})


@pytest.mark.parametrize("listed", sorted(OURS))
def test_all_that_is_named_must_be_listed(listed):
    order = Order(1, parts=[Order.Line("a")])
    assert ObjectMessage(order).get_object(OURS) == order
    with pytest.raises(MessageFormatError, match="not among the allowed"):
        ObjectMessage(order).get_object(OURS - {listed})


@pytest.mark.parametrize("call", CALLS)
def test_the_ways_to_call_do_call(call):
    """The gadgets below are harmless because they are refused, not because they are wrong."""
    loaded = pickle.loads(CALLS[call]("fractions", "Fraction", "3/4"))  # noqa: S301  # our own
    assert "Fraction(3, 4)" in repr([loaded]) or call == "and thrown away"


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("gadget", GADGETS, ids=".".join)
def test_nothing_that_is_not_listed_is_called(gadget, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MessageFormatError):
        load(CALLS[call](*gadget, "canary"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("module", ["canary_module", "decimal_canary", "Decimal", "xdecimal"])
def test_what_is_not_listed_is_not_even_imported(module, tmp_path, monkeypatch):
    (tmp_path / f"{module}.py").write_text("class Decimal: pass\nopen('canary', 'w')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MessageFormatError, match=f"'{module}', 'Decimal'.*not among the allowed"):
        load(b"\x80\x04" + named(module, "Decimal") + b".")
    assert not Path("canary").exists()


@pytest.mark.parametrize("code", [b"\x82\xf0", b"\x83\xf0\x00", b"\x84\xf0\x00\x00\x00"])
def test_names_registered_as_numbers_are_refused(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pickled = b"\x80\x02" + code + text("canary") + b"\x85R."
    copyreg.add_extension("os", "mkdir", 0xF0)
    try:
        pickle.loads(b"\x80\x02" + code + b".")  # noqa: S301  # from now on an unpickler finds it without asking
        with pytest.raises(MessageFormatError, match="EXT"):
            load(pickled, {("os", "mkdir")})
    finally:
        copyreg.remove_extension("os", "mkdir", 0xF0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("pickled", [b"Pid\n.", b"X\1\0\0\0iQ.", b"\x80\x05\x97.", b"\x80\x05\x97\x98."])
def test_objects_from_outside_are_refused(pickled):
    with pytest.raises(MessageFormatError, match="never allowed"):
        load(pickled)


@pytest.mark.parametrize("state", [b"N}" + text("trusted") + b"Ns\x86", b"}" + text("trusted") + b"Ns"])
@pytest.mark.parametrize("fetched", [b"", b"\x940h\x00", b"\x942"])
def test_a_class_that_is_listed_cannot_be_changed(state, fetched):
    pickled = b"\x80\x04" + named(HERE, "Order") + fetched + state + b"b."
    with pytest.raises(MessageFormatError, match="sets attributes of what it names"):
        load(pickled, OURS)
    assert Order.trusted


def test_names_of_python_2_do_not_become_others():
    with pytest.raises(MessageFormatError):
        load(b"c__builtin__\nset\n)R.", {("__builtin__", "set")})


def test_a_long_pickle_is_not_looked_at():
    pickled = pickle.dumps(b"x" * 1000)
    assert load(pickled, max_bytes=len(pickled)) == b"x" * 1000
    with pytest.raises(MessageFormatError, match="max_bytes"):
        load(pickled, max_bytes=len(pickled) - 1)
    with pytest.raises(MessageFormatError, match="max_bytes"):
        load(pickle.dumps(b"x" * 2_000_000))


@pytest.mark.parametrize(
    "nested",
    [
        nested_tuple,
        lambda depth: b"\x80\x04" + b"]" * depth + b"a" * (depth - 1) + b".",
        lambda depth: b"\x80\x04" + b"(" * (depth - 1) + b")" + b"l" * (depth - 1) + b".",
        lambda depth: b"\x80\x04" + (b"}" + text("k")) * (depth - 1) + b"}" + b"s" * (depth - 1) + b".",
    ],
)
def test_depth_is_bounded(nested):
    assert load(nested(100)) is not None
    with pytest.raises(MessageFormatError, match="max_depth"):
        load(nested(101))
    assert load(nested(101), max_depth=101) is not None
    with pytest.raises(MessageFormatError, match="max_depth"):
        load(nested(10_000))


def test_few_bytes_cannot_stand_for_a_huge_value():
    assert len(bomb(60)) < 1000
    with pytest.raises(MessageFormatError, match="times as large"):
        load(bomb(60))
    assert load(bomb(10))


def test_a_huge_key_is_never_hashed():
    """Python would be busy for ever: the hash of a tuple is made of those of its parts, each time anew."""
    doubled = b")" + b"2\x86" * 60
    with pytest.raises(MessageFormatError, match="times as large"):
        load(b"\x80\x04}" + doubled + b"Ns.")


@pytest.mark.parametrize(
    "pickled",
    [
        b"\x80\x04]\x94h\x00a.",  # a list in itself
        b"\x80\x04}\x94" + text("k") + b"h\x00s.",
        b"\x80\x04]\x94h\x00\x85a.",  # in a tuple in itself
        b"\x80\x04]\x94]\x94h\x00ah\x000h\x00h\x01a.",  # in a list in itself, in an order that hides it
    ],
)
def test_what_contains_itself_is_refused(pickled):
    with pytest.raises(MessageFormatError, match="contain itself"):
        load(pickled)


def test_parts_that_are_used_twice_are_no_circle():
    shared = ["x", Decimal(1)]
    assert ObjectMessage([shared, shared, {"a": shared}]).get_object(ALLOWED) == [shared, shared, {"a": shared}]


def test_memo_cannot_be_made_huge():
    with pytest.raises(MessageFormatError, match="numbers its parts"):
        load(b"\x80\x04Nr\xff\xff\xff\x7f.")


@pytest.mark.parametrize(
    "pickled",
    [
        *[b"", b".", b"x", b"0.", b"2.", b"t.", b"1.", b"a.", b"(.", b"h\x00.", b"\x94.", b"N", b"R.", b"\x80\x63N."],
        *[b"\x80\x05\x96\xff\xff\xff\xff\xff\xff\xff\x7f.", b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f."],
        *[b"\xac\xed\0\5", b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7fN.", b"N" * 1000, b"\x8b\xff\xff\xff\x7f."],
        b"I1x\n.",
    ],
    ids=repr,
)
def test_what_is_no_pickle(pickled):
    with pytest.raises(MessageFormatError):
        load(pickled)


@given(st.binary(max_size=60))
def test_whatever_the_bytes_are(data):
    for pickled in (data, b"\x80\x04" + data + b"."):
        try:
            load(pickled)
        except MessageFormatError as error:
            assert len(str(error)) < 600  # noqa: PT017


@given(PLAIN, st.data())
def test_whatever_is_done_to_a_pickle(value, data):
    pickled = bytearray(pickle.dumps(value))
    for _ in range(data.draw(st.integers(1, 3))):
        pickled[data.draw(st.integers(0, len(pickled) - 1))] = data.draw(st.integers(0, 255))
    with suppress(MessageFormatError):
        load(bytes(pickled))


def test_errors_of_listed_classes_are_told_as_ours():
    with pytest.raises(MessageFormatError, match="InvalidOperation") as caught:
        load(b"\x80\x04" + named("decimal", "Decimal") + text("hidden") + b"\x85R.")
    assert "hidden" not in str(caught.value)
    assert type(caught.value.__cause__).__name__ == "InvalidOperation"


def test_pickle_is_used_in_one_place_only():
    ours = Path(jmsjca.__file__).parent
    found = {str(path.relative_to(ours)) for path in ours.rglob("*.py") if dangerous(ast.parse(path.read_text()))}
    assert found == {"messages/safe_pickle.py"}


def dangerous(tree: ast.AST) -> bool:
    calls = {"eval", "exec", "__import__"}
    modules = {"pickle", "_pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "jsonpickle"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and modules & {alias.name.split(".")[0] for alias in node.names}:
            return True
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in modules:
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in calls:
            return True
        unsafe = isinstance(node, ast.Attribute) and node.attr not in {"safe_dump", "safe_load"}
        if unsafe and isinstance(node.value, ast.Name) and node.value.id == "yaml":
            return True
    return False


def test_plain_data_is_a_copy_that_nobody_changes():
    data = {"parts": [1, "two", None]}
    message = ObjectMessage.from_data(data)
    data["parts"].append(3)
    message.body["parts"].append(4)
    assert message.body == message.get_body(dict) == message.get_object(frozenset()) == {"parts": [1, "two", None]}
    assert message.is_body_assignable_to(dict)
    pickled = ObjectMessage.from_pickled(message.pickled)  # for what has no form for data
    assert pickled.get_object(ALLOWED) == {"parts": [1, "two", None]}
    message.clear_body()
    assert (message.body, plain_data_of(message)) == (None, None)


def nested(depth):
    data = []
    for _ in range(depth):
        data = [data]
    return data


@pytest.mark.parametrize("data", [nested(100_000), [threading.Lock()]], ids=["deep", "lock"])
def test_data_that_cannot_be_copied_is_refused(data):
    with pytest.raises(MessageFormatError):
        ObjectMessage.from_data(data)
