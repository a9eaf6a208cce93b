"""Checks of the arguments of activities. A mistake shows in the call that makes it, and not with a later message."""

from jmsjca.arguments import check_instance, is_number, wrong_argument
from jmsjca.connector.collaborations import check_synchronous
from jmsjca.destinations import Destination, Queue, Topic
from jmsjca.errors import ConfigurationError, InvalidArgumentError

__all__ = ["check_message_type", "check_number", "check_operations", "destination_of_kind", "is_rollback", "queue_of"]

_COMMIT, _ROLLBACK = "jbxcommit", "jbxrollback"


def queue_of(queue: object) -> Queue:
    """Return the queue of a listen, poll or browse activity.

    Raises:
        ArgumentTypeError: It is no queue and no name of one.
    """
    wanted = "a name or a Queue(…); ResourceAdapter.activate consumes topics"
    check_instance("queue", queue, (str, Queue), wanted)
    return Queue(queue) if isinstance(queue, str) else queue  # type: ignore[return-value]  # checked above


def destination_of_kind(destination: str | Destination, kind: object) -> Destination:
    """Return the destination of a send activity.

    Args:
        destination: The destination, or its name.
        kind: ``queue`` or ``topic``, for a name.

    Raises:
        ConfigurationError: The kind is another one.
    """
    if kind not in {"queue", "topic"}:
        raise ConfigurationError(f"destination_type is 'queue' or 'topic', not {kind!r:.50}.")
    if not isinstance(destination, str):
        return destination
    return Topic(destination) if kind == "topic" else Queue(destination)


def is_rollback(action: object) -> bool:
    """Return whether an action is a rollback, and not a commit.

    Raises:
        ConfigurationError: It is neither of the two.
    """
    name = action.lower() if isinstance(action, str) else action
    if name not in {_COMMIT, _ROLLBACK}:
        raise ConfigurationError(f"The action is 'JBXCommit' or 'JBXRollback', not {action!r:.50}.")
    return name == _ROLLBACK


def check_message_type(message_type: object) -> None:
    """Raise an error for a message type that is neither TEXT nor BYTE."""
    if message_type not in {"TEXT", "BYTE"}:
        raise ConfigurationError(f"message_type is 'TEXT' or 'BYTE', not {message_type!r:.50}.")


def check_number(name: str, value: object) -> None:
    """Raise an error for a value that is no number of messages."""
    if not isinstance(value, int) or not is_number(value) or value < 0:
        raise wrong_argument(name, value, "a number of messages, from 0 on", InvalidArgumentError)


def check_operations(operation: object, on_success: object, on_failure: object) -> None:
    """Raise an error for an operation that cannot be called, or is asynchronous."""
    check_synchronous("operation", operation)
    for name, value in (("on_success", on_success), ("on_failure", on_failure)):
        if value is not None:
            check_synchronous(name, value)
