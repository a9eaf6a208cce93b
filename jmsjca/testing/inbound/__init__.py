"""The inbound contract: the behaviour of listeners, as pytest cases that use the public API over any provider.

A provider runs the cases like `jmsjca.testing.contract`: a module has the fixture ``jms_broker_url`` and imports
everything from here. Override ``jms_message_count`` to change the number of messages in cases that need many.
"""

from jmsjca.testing.inbound.batches import TestBatches, TestBatchRules, TestSyncBatches
from jmsjca.testing.inbound.concurrency import TestConcurrency, TestDurableListeners, TestStopping, TestTopicListeners
from jmsjca.testing.inbound.harness import ListenerContract, ListenerHarness, jms_message_count
from jmsjca.testing.inbound.hold_until_ack import (
    TestHeldBatches,
    TestHeldMessages,
    TestHoldRules,
    TestSettling,
    TestTimeouts,
)
from jmsjca.testing.inbound.redelivery import (
    TestExpiringMessages,
    TestMovedMessages,
    TestRedelivered,
    TestRedeliveryActions,
    TestRejected,
    TestRetried,
)
from jmsjca.testing.inbound.transactions import TestExceptions, TestExceptionsWithoutTransaction, TestNoMessageLoss

__all__ = [
    "ListenerContract",
    "ListenerHarness",
    "TestBatchRules",
    "TestBatches",
    "TestConcurrency",
    "TestDurableListeners",
    "TestExceptions",
    "TestExceptionsWithoutTransaction",
    "TestExpiringMessages",
    "TestHeldBatches",
    "TestHeldMessages",
    "TestHoldRules",
    "TestMovedMessages",
    "TestNoMessageLoss",
    "TestRedelivered",
    "TestRedeliveryActions",
    "TestRejected",
    "TestRetried",
    "TestSettling",
    "TestStopping",
    "TestSyncBatches",
    "TestTimeouts",
    "TestTopicListeners",
    "jms_message_count",
]
