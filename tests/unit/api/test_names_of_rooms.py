"""Each room offers its public names where the documentation imports them from."""

from importlib import import_module

import pytest

ROOMS = {
    "jmsjca.config": ["ConnectionURL", "parse_options"],
    "jmsjca.connector": [
        *("Activities", "BusinessObject", "Connector", "ConnectorConfig", "DataHandler", "EventPipeline", "ReturnCode"),
    ],
    "jmsjca.descriptors": ["Deployment", "read"],
    "jmsjca.management": ["Insight", "MBeanServer"],
    "jmsjca.management.console": ["Console", "app_for"],
    "jmsjca.management.health": ["app_for"],
    "jmsjca.outbound": ["ConnectionPool"],
    "jmsjca.redelivery": ["Delay", "Delete", "Deliver", "Move", "RedeliveryPolicy"],
    "jmsjca.selectors": ["Selector", "substitute", "substitute_indexed"],
    "jmsjca.spark": ["SCHEMA", "ForeachWriter", "dead_letter", "register", "replies", "reports"],
    "jmsjca.transactions": ["Outbox", "Relay", "SqlInbox"],
}


@pytest.mark.parametrize(("room", "name"), [(room, name) for room, names in ROOMS.items() for name in names])
def test_name_is_offered_and_listed(room, name):
    module = import_module(room)
    assert getattr(module, name) is not None
    assert name in module.__all__


def test_unknown_name_of_management_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Insights'"):
        import_module("jmsjca.management").Insights  # noqa: B018
