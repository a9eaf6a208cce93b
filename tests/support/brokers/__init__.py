"""Real brokers for tests: download, configure, start, kill and restart them. See docs/brokers.md."""

from brokers.broker import Broker, BrokerDied
from brokers.cache import BrokerMissing
from brokers.catalogue import BROKERS, PAIRS

__all__ = ["BROKERS", "PAIRS", "Broker", "BrokerDied", "BrokerMissing"]
