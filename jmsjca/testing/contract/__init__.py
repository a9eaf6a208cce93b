"""The provider contract: what jmsjca relies on, as pytest cases against `jmsjca.spi`.

A provider runs all of it with a module of three lines, in a test run that has the fixture ``jms_broker_url``::

    from jmsjca.testing.contract import *

    @pytest.fixture
    def jms_broker_url(): return "myscheme://broker:1234"

A case whose subject the connection's `Capabilities` lack is skipped, and the capability named. Two groups need
more than a URL, so they are imported by name: `jmsjca.testing.contract.poison`, and `jmsjca.testing.contract.network`
for brokers behind a network.
"""

from jmsjca.testing.contract.bodies import TestBodies
from jmsjca.testing.contract.browsing import TestAdmin, TestBrowsing
from jmsjca.testing.contract.client_ids import TestClientIds
from jmsjca.testing.contract.configured import TestDefaultSettings, TestSettings
from jmsjca.testing.contract.connections import TestClosing, TestRefusals
from jmsjca.testing.contract.crashes import TestCrashes
from jmsjca.testing.contract.dead_letter_places import TestDeadLetterPlaces
from jmsjca.testing.contract.deaths import TestDeaths
from jmsjca.testing.contract.delivery import TestDelivery
from jmsjca.testing.contract.durable_rules import TestDurableRules
from jmsjca.testing.contract.exclusive import TestExclusiveConsumers
from jmsjca.testing.contract.expired_messages import TestExpiry
from jmsjca.testing.contract.failed_messages import TestDeadLetters
from jmsjca.testing.contract.give_back import TestGiveBack
from jmsjca.testing.contract.groups import TestGroups, TestWholeGroups
from jmsjca.testing.contract.groups_and_others import TestGroupsAndOthers
from jmsjca.testing.contract.harness import PATIENCE, Contract, Harness
from jmsjca.testing.contract.headers import TestHeaders
from jmsjca.testing.contract.large_messages import TestLargeMessages
from jmsjca.testing.contract.many_destinations import TestManyDestinations
from jmsjca.testing.contract.maps import TestMaps
from jmsjca.testing.contract.neighbours import TestNeighbours
from jmsjca.testing.contract.no_local import TestNoLocal
from jmsjca.testing.contract.objects import TestObjects
from jmsjca.testing.contract.ordering import TestOrdering
from jmsjca.testing.contract.properties import TestProperties
from jmsjca.testing.contract.removing import TestRemoving
from jmsjca.testing.contract.rollbacks import TestRollback
from jmsjca.testing.contract.selecting import TestSelectors
from jmsjca.testing.contract.selective_consumers import TestSelectiveConsumers
from jmsjca.testing.contract.selective_subscriptions import TestSelectiveSubscriptions
from jmsjca.testing.contract.sending import TestDuplicates, TestSending
from jmsjca.testing.contract.shared_durables import TestSharedDurableSubscriptions
from jmsjca.testing.contract.shared_subscriptions import TestSharedSubscriptions
from jmsjca.testing.contract.streams import TestStreams
from jmsjca.testing.contract.subscriptions import TestDurableSubscriptions, TestTopics
from jmsjca.testing.contract.temporary_destinations import TestTemporaryDestinations
from jmsjca.testing.contract.temporary_kinds import TestTemporaryQueues, TestTemporaryTopics
from jmsjca.testing.contract.units import TestCommit, TestUnitStates

__all__ = [
    "PATIENCE",
    "Contract",
    "Harness",
    "TestAdmin",
    "TestBodies",
    "TestBrowsing",
    "TestClientIds",
    "TestClosing",
    "TestCommit",
    "TestCrashes",
    "TestDeadLetterPlaces",
    "TestDeadLetters",
    "TestDeaths",
    "TestDefaultSettings",
    "TestDelivery",
    "TestDuplicates",
    "TestDurableRules",
    "TestDurableSubscriptions",
    "TestExclusiveConsumers",
    "TestExpiry",
    "TestGiveBack",
    "TestGroups",
    "TestGroupsAndOthers",
    "TestHeaders",
    "TestLargeMessages",
    "TestManyDestinations",
    "TestMaps",
    "TestNeighbours",
    "TestNoLocal",
    "TestObjects",
    "TestOrdering",
    "TestProperties",
    "TestRefusals",
    "TestRemoving",
    "TestRollback",
    "TestSelectiveConsumers",
    "TestSelectiveSubscriptions",
    "TestSelectors",
    "TestSending",
    "TestSettings",
    "TestSharedDurableSubscriptions",
    "TestSharedSubscriptions",
    "TestStreams",
    "TestTemporaryDestinations",
    "TestTemporaryQueues",
    "TestTemporaryTopics",
    "TestTopics",
    "TestUnitStates",
    "TestWholeGroups",
]
