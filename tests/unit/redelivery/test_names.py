"""The names of user rollback data."""

import pytest

from jmsjca.errors import MessageFormatError
from jmsjca.messages import Properties
from jmsjca.redelivery import rollback_key
from jmsjca.redelivery.names import rollback_names


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("JMS_Sun_JMSJCA_UserRollbackData.failuremode", "failuremode"),
        ("JMS_Sun_JMSJCA_UserRollbackDatafailuremode", "failuremode"),
        ("_JMSJCA_UserRollbackData1", "1"),
        ("_JMSJCA_UserRollbackData.1", "1"),
        ("JMS_Sun_JMSJCA_UserRollbackData.a.b", "a.b"),
        ("JMS_Sun_JMSJCA_RedeliveryCount", None),
        ("JMSJCA.UserRollbackData.x", None),
        ("x_JMSJCA_UserRollbackDatax", None),
        ("", None),
    ],
)
def test_each_spelling_means_one_thing(name, key):
    assert rollback_key(name) == key


@pytest.mark.parametrize("rest", ["", ".", "..x", ".x.", " x", "x-y", ".\n"])
def test_what_cannot_name_a_property_is_refused(rest):
    with pytest.raises(MessageFormatError):
        rollback_key(f"_JMSJCA_UserRollbackData{rest}")


@pytest.mark.parametrize("key", ["a", "1", "a.b", "ä_ß", "null"])
def test_each_name_is_a_propertys_and_means_the_key(key):
    names = rollback_names(key)
    assert {rollback_key(name) for name in names} == {key}
    assert set(Properties(dict.fromkeys(names, "x"))) == set(names)


def test_data_travels_with_and_without_the_dot():
    assert rollback_names("x") == (
        "JMS_Sun_JMSJCA_UserRollbackData.x",
        "JMS_Sun_JMSJCA_UserRollbackDatax",
        "_JMSJCA_UserRollbackDatax",
    )
