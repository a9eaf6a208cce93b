"""The tree of exceptions is what its docstring draws."""

import inspect
import re

import pytest

from jmsjca import errors

_LINE = re.compile(r"^(?P<indent>[ │]*)[├└]── (?P<name>\w+)(?: \((?P<second>\w+)\))?$")


def drawn() -> dict[str, tuple[str, str | None]]:
    """Each exception of the drawing with its parent and its builtin second base."""
    tree: dict[str, tuple[str, str | None]] = {}
    above = ["JMSError"]
    for line in (errors.__doc__ or "").splitlines():
        match = _LINE.match(line)
        if match:
            depth = len(match["indent"]) // 4 - 1  # the drawing itself is indented once
            tree[match["name"]] = (above[depth], match["second"])
            above[depth + 1 :] = [match["name"]]
    return tree


def defined() -> dict[str, type]:
    return {name: kind for name, kind in vars(errors).items() if inspect.isclass(kind)}


def test_every_exception_is_drawn():
    assert set(drawn()) | {"JMSError"} == set(defined())


def test_every_exception_is_exported_in_order():
    assert [name for name in errors.__all__ if name in defined()] == sorted(defined())


@pytest.mark.parametrize("name", sorted(drawn()))
def test_bases_are_as_drawn(name):
    parent, second = drawn()[name]
    bases = [base.__name__ for base in defined()[name].__bases__]
    assert bases == [parent, *([second] if second else [])]


@pytest.mark.parametrize("name", sorted(defined()))
def test_every_exception_is_described_and_carries_its_text(name):
    kind = defined()[name]
    assert kind.__doc__
    assert str(kind("what went wrong")) == "what went wrong"


def test_a_bad_url_is_a_value_error():
    with pytest.raises(ValueError, match="wrong"):
        raise errors.InvalidURLError("wrong")
