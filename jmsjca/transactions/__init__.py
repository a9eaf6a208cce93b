"""Messages and database work that commit together: joined transactions, the inbox, the outbox and its relay.

Names are imported on first use: ``jmsjca.transactions.stored_message`` works without the packages of the extra.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from jmsjca.errors import ProviderNotInstalledError

if TYPE_CHECKING:
    from jmsjca.transactions.broker_data_manager import JoinedTransactionManager, join_unit
    from jmsjca.transactions.inbox import InboxOutcome, SqlInbox
    from jmsjca.transactions.last_resource import LastResource
    from jmsjca.transactions.outbox import Outbox, OutboxStatistics
    from jmsjca.transactions.relay import Relay
    from jmsjca.transactions.sql_data_manager import join, joined_session
    from jmsjca.transactions.two_phase import recover_prepared, two_phase_session

__all__ = [
    "InboxOutcome",
    "JoinedTransactionManager",
    "LastResource",
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

_MODULES = {
    "InboxOutcome": "inbox",
    "JoinedTransactionManager": "broker_data_manager",
    "LastResource": "last_resource",
    "Outbox": "outbox",
    "OutboxStatistics": "outbox",
    "Relay": "relay",
    "SqlInbox": "inbox",
    "join": "sql_data_manager",
    "join_unit": "broker_data_manager",
    "joined_session": "sql_data_manager",
    "recover_prepared": "two_phase",
    "two_phase_session": "two_phase",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"{__name__}.{_MODULES[name]}")
    except ImportError as error:
        raise ProviderNotInstalledError(
            f'jmsjca.transactions.{name} needs {error.name}: pip install "jmsjca[transactions]"'
        ) from error
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
