"""Definitions of business objects: sources, validation with all errors at once, inactive children."""

import json

import pytest
from pydantic import BaseModel, Field

from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.definitions import AttributeDefinition, BusinessObjectDefinition, BusinessObjectDefinitions
from jmsjca.errors import ConfigurationError, DataHandlerError

_TOML = """
[Customer.attributes]
CustomerID = { type = "integer", key = true, width = 8 }
Name = { required = true }
Rating = { type = "float" }
Address = { type = "Address", cardinality = "multiple" }

[Address]
inactive = { Status = "inactive" }

[Address.attributes]
City = { required = true }
Status = {}
"""
_CUSTOMER = {
    "CustomerID": AttributeDefinition(type="integer", key=True, width=8),
    "Name": AttributeDefinition(required=True),
    "Rating": AttributeDefinition(type="float"),
    "Address": AttributeDefinition(type="Address", cardinality="multiple"),
}
_ADDRESS = {"City": AttributeDefinition(required=True), "Status": AttributeDefinition()}
_DEFINITIONS = BusinessObjectDefinitions(
    {
        "Customer": BusinessObjectDefinition(attributes=_CUSTOMER),
        "Address": BusinessObjectDefinition(attributes=_ADDRESS, inactive={"Status": "inactive"}),
    }
)


class Address(BaseModel):
    City: str
    Status: str | None = None


class Customer(BaseModel):
    CustomerID: int | None = Field(default=None, json_schema_extra={"key": True, "width": 8})
    Name: str
    Rating: float | None = None
    addresses: list[Address] = Field(default=[], alias="Address")


def _address(city, status=None):
    return BusinessObject("Address", "", {"City": city, "Status": status})


def test_toml_and_json_files_have_the_definitions(tmp_path):
    toml, json_file = tmp_path / "objects.toml", tmp_path / "objects.json"
    toml.write_text(_TOML)
    json_file.write_text(json.dumps({name: definition.model_dump() for name, definition in _DEFINITIONS.items()}))
    assert BusinessObjectDefinitions.from_file(toml) == _DEFINITIONS
    assert BusinessObjectDefinitions.from_file(json_file) == _DEFINITIONS


def test_models_have_the_definitions_of_their_children_too():
    found = BusinessObjectDefinitions.from_models(Customer)
    assert found["Customer"].attributes == _CUSTOMER
    assert list(found["Customer"].attributes) == list(_CUSTOMER)
    assert found["Address"].attributes == _ADDRESS


def test_field_without_equivalent_is_named():
    class Odd(BaseModel):
        When: dict[str, int]

    with pytest.raises(ConfigurationError, match=r"Odd.When has the annotation dict\[str, int\]"):
        BusinessObjectDefinitions.from_models(Odd)


def test_wrong_width_of_a_field_is_named():
    class Narrow(BaseModel):
        Name: str = Field(json_schema_extra={"width": 0})

    with pytest.raises(ConfigurationError, match=r"Narrow.Name are invalid: width = '0'"):
        BusinessObjectDefinitions.from_models(Narrow)


def test_all_errors_of_a_business_object_are_reported_at_once():
    values = {
        "CustomerID": "7",
        "Rating": float("nan"),
        "Address": [_address("Ulm"), _address(None), "Ulm", BusinessObject("Bank")],
        "Fax": "none",
    }
    with pytest.raises(DataHandlerError) as caught:
        _DEFINITIONS.validate(BusinessObject("Customer", "Create", values))
    for problem in [
        "CustomerID = '7' is not of type integer",
        "Name is missing",
        "Rating = 'nan' is not of type float",
        "Address[1].City is missing",
        "Address[2] = 'Ulm' is not of type Address",
        "Address[3] = 'Bank' is not of type Address",
        "Fax = 'none' is not in the definition of Customer",
    ]:
        assert problem in str(caught.value)
    assert "Address[0]" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"Name": ["Ada"]}, "Name = 'a list of 1' does not have single cardinality"),
        ({"Name": "Ada", "Address": _address("Ulm")}, "Address = .* does not have multiple cardinality"),
        ({"Name": "Ada", "CustomerID": True}, "CustomerID = 'True' is not of type integer"),
        ({"Name": "Ada", "Rating": 2**53 + 1}, "Rating = .* is not of type float"),
        ({"Name": "Ada", "Rating": 10**5000}, "Rating = 'an integer of 16610 bits' is not of type float"),
    ],
)
def test_wrong_value_is_named(values, problem):
    with pytest.raises(DataHandlerError, match=problem):
        _DEFINITIONS.validate(BusinessObject("Customer", "Create", values))


def test_valid_business_object_passes():
    values = {"CustomerID": 7, "Name": "Ada", "Rating": 2, "Address": [_address("Ulm"), _address("Bonn")]}
    _DEFINITIONS.validate(BusinessObject("Customer", "Create", values))


def test_delete_event_needs_its_keys_only():
    _DEFINITIONS.validate(BusinessObject("Customer", "Delete", {"CustomerID": 7}))
    with pytest.raises(DataHandlerError, match="CustomerID is missing and is a key of the Delete event"):
        _DEFINITIONS.validate(BusinessObject("Customer", "Delete", {"Name": "Ada"}))


def test_unknown_type_lists_the_known_ones():
    with pytest.raises(DataHandlerError, match="'Order' has no definition; there are: Address, Customer"):
        _DEFINITIONS.validate(BusinessObject("Order"))


def test_inactive_children_are_left_out_at_any_depth():
    definitions = BusinessObjectDefinitions(
        {
            "Order": {"attributes": {"Customer": {"type": "Customer"}, "Site": {"type": "Address"}}},
            "Customer": {"attributes": {"Address": {"type": "Address", "cardinality": "multiple"}}},
            "Address": {"attributes": {"City": {}, "Status": {}}, "inactive": {"Status": "inactive"}},
        }
    )
    addresses = [_address("Ulm", "active"), _address("Bonn", "inactive"), _address("Kiel")]
    customer = BusinessObject("Customer", "", {"Address": addresses})
    order = BusinessObject("Order", "Update", {"Customer": customer, "Site": _address("Jena", "inactive")})
    sent = definitions.without_inactive_children(order)
    assert sent == BusinessObject(
        "Order", "Update", {"Customer": BusinessObject("Customer", "", {"Address": [addresses[0], addresses[2]]})}
    )
    assert len(order.get("Customer").attributes["Address"]) == 3


def test_logically_deleted_object_itself_is_sent():
    deleted = BusinessObject("Address", "Delete", {"City": "Ulm", "Status": "inactive"})
    assert _DEFINITIONS.without_inactive_children(deleted) == deleted


def test_all_errors_of_definitions_are_reported_at_once():
    wrong = {
        "A": {"attributes": {"x": {"type": "Nope", "width": 3}, "y.z": {}}, "inactive": {"Gone": True}},
        "B": {"attributes": {"x": {"type": "text"}}},
    }
    with pytest.raises(ConfigurationError) as caught:
        BusinessObjectDefinitions(wrong)
    for problem in ["A.x: type 'Nope'", "A.x: width 3", "A.y.z: a name", "no attribute 'Gone'", "B.x: type 'text'"]:
        assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("absent.toml", None, "No such file"),
        ("objects.toml", "[A", "cannot be read"),
        ("objects.json", "{", "cannot be read"),
        ("objects.json", "[]", "dictionary"),
        ("objects.json", '{"A": {"attributes": {"x": {"widht": 3}}}}', r"A.attributes.x.widht = '3': Extra inputs"),
    ],
)
def test_invalid_file_is_named(tmp_path, name, content, problem):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(ConfigurationError, match=rf"(?s){name}.*{problem}"):
        BusinessObjectDefinitions.from_file(tmp_path / name)
