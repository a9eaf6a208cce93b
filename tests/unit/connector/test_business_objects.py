"""Business objects: paths, equality, copies."""

import pytest

from jmsjca.connector.business_objects import BusinessObject
from jmsjca.errors import InvalidAttributeError


def _customer():
    addresses = [BusinessObject("Address", "", {"AddressID": number}) for number in range(5)]
    return BusinessObject("Customer", "Create", {"Name": "Ada", "Address": addresses, "Bank": BusinessObject("Bank")})


def test_path_resolves_names_and_indexes():
    customer = _customer()
    assert customer.get("Name") == "Ada"
    assert customer.get("Address[4].AddressID") == 4
    assert customer.get("Bank") == BusinessObject("Bank")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("Address[5].AddressID", "out of range"),
        ("Address.AddressID", "not a single business object"),
        ("Name[0]", "not a list"),
        ("Nam", "no attribute 'Nam'"),
        ("Address[-1]", "optional index"),
        ("Bank..Code", "optional index"),
        ("", "optional index"),
    ],
)
def test_unresolvable_path_names_the_reason(path, reason):
    with pytest.raises(InvalidAttributeError, match=reason):
        _customer().get(path)


def test_copy_is_equal_and_independent():
    customer = _customer()
    copied = customer.copy()
    assert copied == customer
    copied.get("Address[0]").attributes["AddressID"] = 9
    assert customer.get("Address[0].AddressID") == 0
    assert copied != customer
