"""Locators: functions that find the transaction manager of a program, named by entry points."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from jmsjca.arguments import did_you_mean
from jmsjca.errors import InvalidOptionError, ProviderNotInstalledError
from jmsjca.transactions.broker_data_manager import JoinedTransaction, TransactionSource, transaction_of

try:
    import transaction as package  # type: ignore[import-untyped]  # it has no annotations
    from transaction.interfaces import NoTransaction  # type: ignore[import-untyped]  # likewise
except ImportError as error:
    raise ProviderNotInstalledError(
        'A transaction manager needs the transaction package: pip install "jmsjca[transactions]".'
    ) from error

if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.metadata import EntryPoint

__all__ = ["TransactionLocator", "current_transaction", "find_locator", "thread_manager", "threads_manager"]

_GROUP = "jmsjca.transaction_locators"
_THREAD = "thread"

TransactionLocator: TypeAlias = Callable[[], TransactionSource | None]
"""Returns the transaction manager of the caller, or its current transaction; None for no transaction."""


def thread_manager() -> Any:
    """Return ``transaction.manager``, which has a manager for each thread. This is the locator "thread"."""
    return package.manager


@cache
def find_locator(name: str) -> TransactionLocator:
    """Return a locator by its name.

    Args:
        name: "thread", or the name of an entry point of the group ``jmsjca.transaction_locators``.

    Raises:
        InvalidOptionError: There is no such entry point, or it cannot be loaded.
    """
    if name == _THREAD:
        return thread_manager
    found = {entry.name: entry for entry in _entry_points()}
    if name not in found:
        raise InvalidOptionError(
            f"JMSJCA.LocatorClass names no entry point of the group {_GROUP}: {name!r} "
            f"{did_you_mean(name.lower(), {known.lower(): known for known in (_THREAD, *found)})}."
        )
    try:
        locator: TransactionLocator = found[name].load()
    except (ImportError, AttributeError) as error:
        raise InvalidOptionError(f"The transaction locator {name!r} cannot be loaded: {error}.") from error
    return locator


def current_transaction(locator: TransactionLocator) -> JoinedTransaction | None:
    """Return the caller's transaction; None outside of a transaction.

    A manager in explicit mode has no transaction before ``begin()``. A manager in implicit mode always has one.

    Args:
        locator: The locator.
    """
    source = locator()
    try:
        return None if source is None else transaction_of(source)
    except NoTransaction:
        return None


def threads_manager(name: str | None) -> Any:
    """Return the thread-local object for listeners; its ``manager`` is the transaction manager of the current thread.

    Args:
        name: The name of a locator; None for "thread".

    Raises:
        InvalidOptionError: The locator does not find a thread-local manager.
    """
    found = thread_manager() if name is None else find_locator(name)()
    if not isinstance(found, package.ThreadTransactionManager):
        raise InvalidOptionError(
            f"JMSJCA.LocatorClass={name} finds {type(found).__name__}: a listener needs a "
            "transaction.ThreadTransactionManager, which returns the listener's transaction while the handler runs."
        )
    return found


def _entry_points() -> "Iterable[EntryPoint]":
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    return entry_points(group=_GROUP)
