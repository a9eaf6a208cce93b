"""Messages and database work that commit together: joined transactions, the transactional outbox and its relay."""

from jmsjca.transactions.broker_data_manager import join_unit
from jmsjca.transactions.outbox import Outbox, OutboxStatistics
from jmsjca.transactions.relay import Relay
from jmsjca.transactions.sql_data_manager import join

__all__ = ["Outbox", "OutboxStatistics", "Relay", "join", "join_unit"]
