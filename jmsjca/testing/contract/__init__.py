"""The provider contract: the behaviour that jmsjca relies on, as pytest cases against `jmsjca.spi`.

A provider runs all cases with a module of three lines, in a test run that has the fixture ``jms_broker_url``::

    from jmsjca.testing.contract import *

    @pytest.fixture
    def jms_broker_url(): return "myscheme://broker:1234"

A case is skipped if the `Capabilities` of the connection lack its subject; the reason names the capability. Two groups
need more than a URL, so they are imported by name: `jmsjca.testing.contract.poison`, and
`jmsjca.testing.contract.network` for brokers on a network.
"""

from jmsjca.testing.contract.admin import TestAdmin, TestBrowsing, TestRemoving
from jmsjca.testing.contract.administration import TestActivity, TestCreating
from jmsjca.testing.contract.connections import TestClientIds, TestClosing, TestRefusals
from jmsjca.testing.contract.dead_letters import TestDeadLetterPlaces, TestDeadLetters
from jmsjca.testing.contract.destination_settings import TestDefaultSettings, TestExpiry, TestSettings
from jmsjca.testing.contract.exclusive_consumers import TestExclusiveConsumers
from jmsjca.testing.contract.groups import TestGroupInteractions, TestGroups, TestWholeGroups
from jmsjca.testing.contract.harness import PATIENCE, Contract, Harness
from jmsjca.testing.contract.messages import TestBodies, TestHeaders, TestObjects, TestProperties
from jmsjca.testing.contract.pool_borrowers import TestBorrowers, TestWaitingBorrowers
from jmsjca.testing.contract.pools import TestPools, TestPoolSizes, TestReplacedConnections
from jmsjca.testing.contract.prefetch import TestGiveBack, TestLargeMessages
from jmsjca.testing.contract.processes import TestConcurrentProcesses, TestCrashes, TestKilledProcesses
from jmsjca.testing.contract.producer_pools import TestPooledProducers
from jmsjca.testing.contract.receiving import TestDelivery, TestOrdering
from jmsjca.testing.contract.selectors import TestSelectiveConsumers, TestSelectiveSubscriptions, TestSelectors
from jmsjca.testing.contract.sending import TestDuplicates, TestManyDestinations, TestSending
from jmsjca.testing.contract.sessions import TestAsynchronousSends, TestMessageListeners, TestPipelinedSends
from jmsjca.testing.contract.shared_subscriptions import TestSharedDurableSubscriptions, TestSharedSubscriptions
from jmsjca.testing.contract.structured_messages import TestMaps, TestStreams
from jmsjca.testing.contract.subscriptions import TestDurableRules, TestDurableSubscriptions, TestNoLocal, TestTopics
from jmsjca.testing.contract.temporary_destinations import (
    TestTemporaryDestinations,
    TestTemporaryQueues,
    TestTemporaryTopics,
)
from jmsjca.testing.contract.units import TestCommit, TestRollback, TestUnitStates

__all__ = [
    "PATIENCE",
    "Contract",
    "Harness",
    "TestActivity",
    "TestAdmin",
    "TestAsynchronousSends",
    "TestBodies",
    "TestBorrowers",
    "TestBrowsing",
    "TestClientIds",
    "TestClosing",
    "TestCommit",
    "TestConcurrentProcesses",
    "TestCrashes",
    "TestCreating",
    "TestDeadLetterPlaces",
    "TestDeadLetters",
    "TestDefaultSettings",
    "TestDelivery",
    "TestDuplicates",
    "TestDurableRules",
    "TestDurableSubscriptions",
    "TestExclusiveConsumers",
    "TestExpiry",
    "TestGiveBack",
    "TestGroupInteractions",
    "TestGroups",
    "TestHeaders",
    "TestKilledProcesses",
    "TestLargeMessages",
    "TestManyDestinations",
    "TestMaps",
    "TestMessageListeners",
    "TestNoLocal",
    "TestObjects",
    "TestOrdering",
    "TestPipelinedSends",
    "TestPoolSizes",
    "TestPooledProducers",
    "TestPools",
    "TestProperties",
    "TestRefusals",
    "TestRemoving",
    "TestReplacedConnections",
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
    "TestWaitingBorrowers",
    "TestWholeGroups",
]
