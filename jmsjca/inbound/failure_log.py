"""Log records of failed deliveries and replies: the message, the handler, and the traceback from its own frame on."""

import logging
from collections.abc import Sequence

from jmsjca import spi
from jmsjca.errors import InvalidDestinationError, JMSError, Retry
from jmsjca.inbound.endpoint import Endpoint, message_identity
from jmsjca.inbound.log_fields import log_fields
from jmsjca.log_records import get_logger
from jmsjca.messages.message import Message
from jmsjca.messages.settlement import Outcome

__all__ = ["log_dropped_reply", "log_failure", "log_unread_inbox"]

logger = get_logger("jmsjca.inbound")


def log_failure(endpoint: Endpoint, error: BaseException, deliveries: Sequence[spi.Delivery], duration: float) -> None:
    """Log an error of the handler, unless too many were logged: then a later record has the number of those left out.

    The record has attributes for formatters and filters, see `log_fields`. An error of jmsjca says all in its text; for
    any other the record has the traceback.

    Args:
        endpoint: The endpoint.
        error: The error.
        deliveries: The messages that the handler was called with; empty for the end of a batch.
        duration: Seconds that the call of the handler took.
    """
    if not logger.isEnabledFor(logging.INFO if isinstance(error, Retry) else logging.ERROR):
        return
    suppressed = endpoint.failures.admit()
    if suppressed is None:
        return
    fields = _fields(endpoint, deliveries, suppressed, duration)
    text = f"The handler {fields['handler']} of {endpoint.name} failed on {_subject(fields, len(deliveries))}"
    if suppressed:
        text = f"{text} ({suppressed} failures before were not logged)"
    if isinstance(error, Retry):
        logger.info("%s, which is redelivered: %s", text, error, extra=fields)
    elif isinstance(error, JMSError):
        logger.error("%s, which is rolled back and redelivered: %s", text, error, extra=fields)
    else:
        logger.error("%s, which is rolled back and redelivered.", text, exc_info=error, extra=fields)


def log_dropped_reply(endpoint: Endpoint, request: Message, error: InvalidDestinationError) -> None:
    """Log that a reply is dropped, because the requester does not wait for it any more, unless too many were logged.

    Args:
        endpoint: The endpoint.
        request: The request.
        error: The error of the send.
    """
    suppressed = endpoint.failures.admit()
    if suppressed is None:
        return
    fields = log_fields(
        "reply_dropped",
        endpoint.log_source,
        handler=endpoint.handler.name,
        message_id=request.message_id,
        target=str(request.reply_to),
        suppressed=suppressed,
    )
    text = "%s: the reply to %s is dropped, as its temporary destination does not exist any more%s: %s"
    before = f" ({suppressed} failures before were not logged)" if suppressed else ""
    logger.warning(text, endpoint.name, request.message_id, before, error, extra=fields)


def log_unread_inbox(endpoint: Endpoint, delivery: spi.Delivery, so_that: str, error: Exception) -> None:
    """Log that the inbox cannot be read, unless too many failures were logged.

    Args:
        endpoint: The endpoint.
        delivery: The message.
        so_that: The consequence, with ``%s`` for the id of the message.
        error: The error of the database.
    """
    suppressed = endpoint.failures.admit()
    if suppressed is None:
        return
    identity = message_identity(delivery)
    fields = log_fields(
        "inbox_failed",
        endpoint.log_source,
        message_id=identity,
        delivery_count=delivery.count or 1 + delivery.redelivered,
        suppressed=suppressed,
    )
    before = f" ({suppressed} failures before were not logged)" if suppressed else ""
    text = f"%s: the inbox cannot be read, so that {so_that}%s: %s"
    logger.warning(text, endpoint.name, identity, before, error, extra=fields)


def _fields(
    endpoint: Endpoint, deliveries: Sequence[spi.Delivery], suppressed: int, duration: float
) -> dict[str, object]:
    first = deliveries[0] if deliveries else None
    return log_fields(
        "handler_failed",
        endpoint.log_source,
        handler=endpoint.handler.name,
        messages=len(deliveries),
        outcome=Outcome.ROLLED_BACK.value,
        suppressed=suppressed,
        duration=duration,
        message_id=first and message_identity(first),
        delivery_count=first and (first.count or 1 + first.redelivered),
    )


def _subject(fields: dict[str, object], messages: int) -> str:
    """Return the messages as text, with the fields of the first one."""
    if not messages:
        return f"the end of a batch from {fields['destination']}"
    others = f" and {messages - 1} more" if messages > 1 else ""
    return f"{fields['message_id']}{others} from {fields['destination']} (delivery {fields['delivery_count']})"
