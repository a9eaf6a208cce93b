"""The inbound contract: what listeners do, as pytest cases that use the public API over any provider.

A provider runs them as those of `jmsjca.testing.contract`: with a module that has the fixture ``jms_broker_url`` and
imports everything from here. ``jms_message_count`` tells how many messages the cases send that need many.
"""

from jmsjca.testing.inbound.batch_rules import TestBatchRules, TestSyncBatches
from jmsjca.testing.inbound.batches import TestBatches
from jmsjca.testing.inbound.concurrency import TestConcurrency
from jmsjca.testing.inbound.dead_letters import TestDeadLetters
from jmsjca.testing.inbound.exceptions import TestExceptions, TestExceptionsWithoutTransaction
from jmsjca.testing.inbound.held_messages import TestHeldBatches, TestHeldMessages
from jmsjca.testing.inbound.hold_rules import TestHoldRules
from jmsjca.testing.inbound.losing_nothing import TestLosingNothing
from jmsjca.testing.inbound.moved_messages import TestMovedMessages
from jmsjca.testing.inbound.redelivered import TestRedelivered
from jmsjca.testing.inbound.settling import TestSettling, TestTimeouts
from jmsjca.testing.inbound.stage import Inbound, Stage, jms_message_count
from jmsjca.testing.inbound.stopping import TestStopping
from jmsjca.testing.inbound.topics import TestDurableListeners, TestTopics

__all__ = [
    "Inbound",
    "Stage",
    "TestBatchRules",
    "TestBatches",
    "TestConcurrency",
    "TestDeadLetters",
    "TestDurableListeners",
    "TestExceptions",
    "TestExceptionsWithoutTransaction",
    "TestHeldBatches",
    "TestHeldMessages",
    "TestHoldRules",
    "TestLosingNothing",
    "TestMovedMessages",
    "TestRedelivered",
    "TestSettling",
    "TestStopping",
    "TestSyncBatches",
    "TestTimeouts",
    "TestTopics",
    "jms_message_count",
]
