"""Relationship tables: entries stay after a logical delete, and go after a physical one."""

import pytest
import sqlalchemy as sa

from jmsjca.connector import BusinessObject
from jmsjca.connector.definitions import BusinessObjectDefinitions
from jmsjca.connector.relationships import SqlRelationships
from jmsjca.errors import ConfigurationError

DEFINITIONS = BusinessObjectDefinitions(
    {
        "Customer": {"attributes": {"ID": {"key": True}, "State": {}}, "inactive": {"State": "gone"}},
        "Client": {"attributes": {"Number": {"type": "integer", "key": True}}},
    }
)
CUSTOMER, CLIENT = BusinessObject("Customer", "Create", {"ID": "a"}), BusinessObject("Client", "Create", {"Number": 7})


@pytest.fixture
def relationships():
    engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
    made = SqlRelationships(engine, DEFINITIONS)
    made.metadata.create_all(engine)
    yield made
    engine.dispose()


def test_keys_of_several_applications_belong_to_an_entity(relationships):
    entity = relationships.record("crm", CUSTOMER)
    assert relationships.relate("shop", CLIENT, entity) == entity
    assert relationships.keys(entity) == {"crm": "ID=a", "shop": "Number=7"}
    assert relationships.record("crm", BusinessObject("Customer", "Update", {"ID": "a"})) == entity
    assert relationships.entity("shop", CUSTOMER) is None


@pytest.mark.parametrize("given", [None, "chosen"])
def test_keys_that_two_programs_add_at_once_belong_to_one_entity(tmp_path, given):
    engine = sa.create_engine(f"sqlite:///{tmp_path}/hub.db")
    relationships, others = SqlRelationships(engine, DEFINITIONS), []
    relationships.metadata.create_all(engine)

    @sa.event.listens_for(engine, "before_cursor_execute")
    def add_meanwhile(_connection, _cursor, statement, *_):
        if not others and not statement.startswith("SELECT"):
            others.append(None)
            others.append(relationships.relate("crm", CUSTOMER))

    entity = relationships.relate("crm", CUSTOMER, given)
    assert entity == (given or others[1])
    assert relationships.entity("crm", CUSTOMER) == entity
    engine.dispose()


def test_a_physical_delete_removes_the_entry(relationships):
    entity = relationships.record("crm", CUSTOMER)
    relationships.relate("shop", CLIENT, entity)
    assert relationships.record("crm", BusinessObject("Customer", "Delete", {"ID": "a"})) == entity
    assert relationships.keys(entity) == {"shop": "Number=7"}
    assert relationships.record("crm", BusinessObject("Customer", "Delete", {"ID": "a"})) is None


def test_a_logical_delete_keeps_the_entry(relationships):
    entity = relationships.record("crm", CUSTOMER)
    assert relationships.record("crm", BusinessObject("Customer", "Delete", {"ID": "a", "State": "gone"})) == entity
    assert relationships.keys(entity) == {"crm": "ID=a"}


def test_a_type_without_a_definition(relationships):
    with pytest.raises(ConfigurationError, match="no definition"):
        relationships.record("crm", BusinessObject("Unknown", "Create"))
