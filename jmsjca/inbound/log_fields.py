"""The fields of the log records of listeners, for formatters and filters."""

from typing import Literal

from jmsjca.log_records import one_line

__all__ = ["Event", "log_fields"]

Event = Literal[
    "committed_before",
    "connection_failed",
    "connection_lost",
    "connection_waiting",
    "copy_changed",
    "dead_lettered",
    "delivery_limit",
    "failed_while_stopping",
    "handler_failed",
    "handlers_abandoned",
    "move_failed",
    "move_rolled_back",
    "no_end_of_redelivery",
    "status_changed",
    "stop_requested",
    "stopped_permanently",
    "stopping",
    "unit_late",
    "unit_rolled_back",
]
"""The events of listeners. The page on logging describes each."""


def log_fields(event: Event, endpoint: str, **fields: object) -> dict[str, object]:
    """Return the argument ``extra`` of a log record: attributes that a formatter can write.

    Args:
        event: The event.
        endpoint: The display name of the activation.
        **fields: Further attributes, for example ``message_id``. None of them is the body of a message, or a secret.
            Control characters of texts are escaped.
    """
    shown = {name: one_line(value) if isinstance(value, str) else value for name, value in fields.items()}
    return {"event": event, "endpoint": endpoint, **shown}
