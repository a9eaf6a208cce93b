"""Data handlers: choice by MIME type, round trips, errors."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.data_handlers import data_handler
from jmsjca.errors import ConfigurationError, DataHandlerError, UnknownBusinessObjectError

_names = st.text(min_size=1, max_size=8).filter(lambda name: name not in {"_type", "_verb"})
_scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


def _objects(values):
    return st.builds(BusinessObject, _names, st.text(max_size=8), st.dictionaries(_names, values, max_size=4))


_business_objects = _objects(st.recursive(_scalars, lambda inner: _objects(inner | st.lists(_scalars)), max_leaves=8))


@given(_business_objects)
def test_json_round_trip(business_object):
    handler = data_handler("application/json")
    assert handler.to_business_object(handler.to_content(business_object)) == business_object


def test_nested_json_without_types_takes_the_names_of_attributes():
    body = b'{"_verb": "Create", "Address": [{"City": "Ulm"}]}'
    address = BusinessObject("Address", "", {"City": "Ulm"})
    found = data_handler("Application/JSON; charset=utf-8").to_business_object(body, type="Customer")
    assert found == BusinessObject("Customer", "Create", {"Address": [address]})


def test_body_without_type_is_an_unknown_business_object():
    with pytest.raises(UnknownBusinessObjectError, match="_type"):
        data_handler("application/json").to_business_object('{"Name": "Ada"}')


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("[1]", "not an object"),
        ("{", "not valid JSON"),
        (b"\xff\xff", "not valid JSON"),
        ('{"a": 1, "a": 2}', "'a' twice"),
        ('{"a": NaN}', "NaN"),
        ('{"a": {"b": [1, 1e999]}}', r"Attribute a.b\[1\] has a number that is too large"),
        ('{"a": [[1]]}', r"a\[0\] is a list in a list"),
        ('{"_type": "Order"}', "'Order', but 'Customer'"),
        ('{"a": {"_verb": 1}}', "a._verb is a text, not 1"),
    ],
)
def test_invalid_json_names_field_and_value(body, reason):
    with pytest.raises(DataHandlerError, match=reason):
        data_handler("application/json").to_business_object(body, type="Customer")


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"a": float("inf")}, "a has the value inf"),
        ({"a": [BusinessObject("B", "", {"c": object})]}, r"a\[0\].c has the value"),
        ({"_verb": "x"}, "_verb has a name that is reserved"),
    ],
)
def test_unrepresentable_attribute_is_named(attributes, reason):
    with pytest.raises(DataHandlerError, match=reason):
        data_handler("application/json").to_content(BusinessObject("A", "", attributes))


def test_unknown_mime_type_lists_the_known_ones():
    with pytest.raises(ConfigurationError, match=r"'text/none'.*application/json"):
        data_handler("text/none")


def test_json_names_type_and_verb():
    text = data_handler("application/json").to_content(BusinessObject("Customer", "Update", {"Name": "Ada"}))
    assert json.loads(text) == {"_type": "Customer", "_verb": "Update", "Name": "Ada"}


def test_entry_point_of_a_package_adds_a_data_handler(tmp_path, monkeypatch):
    package = tmp_path / "handlers_of_ours-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: handlers-of-ours\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[jmsjca.data_handlers]\ntext/ours = handlers_of_ours:Handler\n")
    (tmp_path / "handlers_of_ours.py").write_text("class Handler:\n    ours = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert data_handler("text/ours").ours


@pytest.mark.parametrize("content", ['\ufeff{"_type": "Order"}', b'\xef\xbb\xbf{"_type": "Order"}'])
def test_a_byte_order_mark_before_json_is_ignored(content):
    assert data_handler("application/json").to_business_object(content).type == "Order"
