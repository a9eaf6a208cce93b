"""The names of user rollback data."""

import pytest

from jmsjca.messages import Properties, rollback_key
from jmsjca.messages.vendor_properties import rollback_names


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
