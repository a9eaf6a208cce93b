"""Log records of failed deliveries: the message, the handler, and the traceback from the handler's own frame on."""

from collections.abc import Sequence

from jmsjca import spi
from jmsjca.errors import JMSError, Retry
from jmsjca.inbound.endpoint import Endpoint, message_identity
from jmsjca.inbound.log_fields import log_fields
from jmsjca.log_records import get_logger

__all__ = ["log_failure"]

logger = get_logger("jmsjca.inbound")


def log_failure(endpoint: Endpoint, error: BaseException, deliveries: Sequence[spi.Delivery]) -> None:
    """Log an error of the handler.

    The record has the attributes ``endpoint``, ``handler``, ``destination``, ``message_id`` and ``delivery_count``, for
    formatters and filters. An error of jmsjca says all in its text; for any other the record has the traceback.

    Args:
        endpoint: The endpoint.
        error: The error.
        deliveries: The messages that the handler was called with; empty for the end of a batch.
    """
    fields = _fields(endpoint, deliveries)
    text = f"The handler {fields['handler']} of {endpoint.name} failed on {_subject(fields, len(deliveries))}"
    if isinstance(error, Retry):
        logger.info("%s, which is redelivered: %s", text, error, extra=fields)
    elif isinstance(error, JMSError):
        logger.error("%s, which is rolled back and redelivered: %s", text, error, extra=fields)
    else:
        logger.error("%s, which is rolled back and redelivered.", text, exc_info=error, extra=fields)


def _fields(endpoint: Endpoint, deliveries: Sequence[spi.Delivery]) -> dict[str, object]:
    first = deliveries[0] if deliveries else None
    return log_fields(
        "handler_failed",
        endpoint.name,
        handler=endpoint.handler.name,
        destination=str(endpoint.settings.destination),
        message_id=first and message_identity(first),
        delivery_count=first and (first.count or 1 + first.redelivered),
    )


def _subject(fields: dict[str, object], messages: int) -> str:
    """Return the messages as text, with the fields of the first one."""
    if not messages:
        return f"the end of a batch from {fields['destination']}"
    others = f" and {messages - 1} more" if messages > 1 else ""
    return f"{fields['message_id']}{others} from {fields['destination']} (delivery {fields['delivery_count']})"
