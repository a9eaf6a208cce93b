"""The fields of the log records of listeners, for formatters and filters."""

from dataclasses import dataclass
from typing import Literal

from jmsjca.log_records import one_line

__all__ = ["Event", "EventSource", "log_fields"]

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
    "inbox_failed",
    "move_failed",
    "move_rolled_back",
    "no_end_of_redelivery",
    "records_suppressed",
    "reply_dropped",
    "resize_limited",
    "status_changed",
    "stop_requested",
    "stopped_permanently",
    "stopping",
    "unit_late",
    "unit_rolled_back",
]
"""The events of listeners. The page on logging describes each."""


@dataclass(frozen=True, slots=True)
class EventSource:
    """The fields that all log records of one listener have.

    Attributes:
        adapter: The name of the adapter's management bean; for an adapter without a name, the URL of the broker.
        endpoint: The display name of the activation.
        destination: The destination of the listener.
    """

    adapter: str
    endpoint: str
    destination: str


def log_fields(
    event: Event, source: EventSource, *, duration: float | None = None, **fields: object
) -> dict[str, object]:
    """Return the argument ``extra`` of a log record: attributes that a formatter can write.

    Args:
        event: The event.
        source: The listener.
        duration: Seconds that it took; None for an event that took no time.
        **fields: Further attributes, for example ``message_id``. None of them is the body of a message, or a secret.
            Control characters of texts are escaped.
    """
    if duration is not None:
        fields["duration"] = round(duration, 6)
    named = {"adapter": source.adapter, "endpoint": source.endpoint, "destination": source.destination, **fields}
    return {"event": event} | {
        name: one_line(value) if isinstance(value, str) else value for name, value in named.items()
    }
