"""The provider contract: the behaviour that jmsjca relies on, as pytest cases against `jmsjca.spi`.

A provider runs all cases with a module of three lines, in a test run that has the fixture ``jms_broker_url``::

    from jmsjca.testing.contract import *

    @pytest.fixture
    def jms_broker_url(): return "myscheme://broker:1234"

A case is skipped if the `Capabilities` of the connection lack its subject; the reason names the capability. Two groups
need more than a URL, so they are imported by name: `jmsjca.testing.contract.messages`, and
`jmsjca.testing.contract.network` for brokers on a network.
"""

from jmsjca.testing.contract.administration import TestActivity, TestAdmin, TestBrowsing, TestCreating, TestRemoving
from jmsjca.testing.contract.connections import TestClientIds, TestClosing, TestRefusals
from jmsjca.testing.contract.dead_letters import TestDeadLetterPlaces, TestDeadLetters
from jmsjca.testing.contract.destinations import (
    TestDefaultSettings,
    TestExpiry,
    TestSettings,
    TestTemporaryDestinations,
    TestTemporaryQueues,
    TestTemporaryTopics,
)
from jmsjca.testing.contract.groups import TestExclusiveConsumers, TestGroupInteractions, TestGroups, TestWholeGroups
from jmsjca.testing.contract.harness import PATIENCE, Contract, Harness
from jmsjca.testing.contract.messages import TestBodies, TestHeaders, TestMaps, TestObjects, TestProperties, TestStreams
from jmsjca.testing.contract.pools import (
    TestBorrowers,
    TestPooledProducers,
    TestPools,
    TestPoolSizes,
    TestReplacedConnections,
    TestWaitingBorrowers,
)
from jmsjca.testing.contract.processes import TestConcurrentProcesses, TestCrashes, TestKilledProcesses
from jmsjca.testing.contract.selectors import TestSelectiveConsumers, TestSelectiveSubscriptions, TestSelectors
from jmsjca.testing.contract.sending_and_receiving import (
    TestDelivery,
    TestDuplicates,
    TestGiveBack,
    TestLargeMessages,
    TestManyDestinations,
    TestOrdering,
    TestSending,
)
from jmsjca.testing.contract.sessions import (
    TestAsynchronousSends,
    TestCommit,
    TestMessageListeners,
    TestPipelinedSends,
    TestRollback,
    TestUnitsOfOneReceive,
    TestUnitStates,
)
from jmsjca.testing.contract.subscriptions import (
    TestDurableRules,
    TestDurableSubscriptions,
    TestNoLocal,
    TestSharedDurableSubscriptions,
    TestSharedSubscriptions,
    TestTopics,
)

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
    "TestUnitsOfOneReceive",
    "TestWaitingBorrowers",
    "TestWholeGroups",
]
