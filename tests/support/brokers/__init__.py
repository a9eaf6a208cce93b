"""Real brokers for tests: download, configure, start, kill and restart them. See docs/how-to/brokers.md."""

from brokers.broker import Broker, BrokerDied
from brokers.products import BROKERS, JAVA_PAIRS, PAIRS
from brokers.provisioning import BrokerMissing

__all__ = ["BROKERS", "JAVA_PAIRS", "PAIRS", "Broker", "BrokerDied", "BrokerMissing"]
