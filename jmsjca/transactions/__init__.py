"""Messages and database work that commit together: the transactional outbox and its relay."""

from jmsjca.transactions.outbox import Outbox, OutboxStatistics
from jmsjca.transactions.relay import Relay

__all__ = ["Outbox", "OutboxStatistics", "Relay"]
