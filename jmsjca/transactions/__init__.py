"""Messages and database work that commit together: joined transactions, the inbox, the outbox and its relay."""

from jmsjca.transactions.broker_data_manager import join_unit
from jmsjca.transactions.inbox import InboxOutcome, SqlInbox
from jmsjca.transactions.joined_transaction import JoinedTransactionManager
from jmsjca.transactions.outbox import Outbox, OutboxStatistics
from jmsjca.transactions.relay import Relay
from jmsjca.transactions.sql_data_manager import join, joined_session
from jmsjca.transactions.two_phase import recover_prepared, two_phase_session

__all__ = [
    "InboxOutcome",
    "JoinedTransactionManager",
    "Outbox",
    "OutboxStatistics",
    "Relay",
    "SqlInbox",
    "join",
    "join_unit",
    "joined_session",
    "recover_prepared",
    "two_phase_session",
]
