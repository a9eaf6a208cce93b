"""The names of user rollback data."""

import pytest

from jmsjca.messages import rollback_key


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("JMS_Sun_JMSJCA_UserRollbackData.failuremode", "failuremode"),
        ("JMS_Sun_JMSJCA_UserRollbackDatafailuremode", "failuremode"),
        ("_JMSJCA_UserRollbackData1", "1"),
        ("_JMSJCA_UserRollbackData.1", "1"),
        ("JMS_Sun_JMSJCA_UserRollbackData.a.b", "a.b"),
        ("_jmsjca_USERROLLBACKDATA.Aa", "Aa"),
        ("JMS_Sun_JMSJCA_RedeliveryCount", None),
        ("JMSJCA.UserRollbackData.x", None),
        ("x_JMSJCA_UserRollbackDatax", None),
        ("", None),
    ],
)
def test_each_spelling_means_one_thing(name, key):
    assert rollback_key(name) == key
