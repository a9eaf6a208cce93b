"""Replies of a job to the messages that it has read."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import MapType

from jmsjca.destinations import Queue
from jmsjca.errors import InvalidOptionError
from jmsjca.spark.rejections import FIRST_ID

__all__ = ["replies"]

_NEEDED = ("message_id", "correlation_id", "reply_to")


def replies(
    requests: DataFrame,
    text: Column | str | None = None,
    *,
    body: Column | None = None,
    properties: Column | None = None,
    without: str = "skip",
) -> DataFrame:
    """Return the table of replies, which ``format("jms")`` sends: each row to the ``reply_to`` of its request.

    The correlation id of a reply is that of the request, or else the message id of the request (JMS 3.1, section
    3.4.5); its priority is that of the request. Properties of the request are not those of the reply.

    Args:
        requests: Rows that were read with ``format("jms")``, with the columns ``message_id``, ``correlation_id`` and
            ``reply_to``; ``priority`` is used if it is there.
        text: The text of a reply: a column, or the name of one.
        body: The body of a reply, instead of a text: a column of binary data or text.
        properties: The properties of a reply: a struct or a map.
        without: The treatment of requests that have no ``reply_to``. "skip" sends nothing, as a listener does; "fail"
            fails the task; the name of a queue sends the replies there.

    Raises:
        InvalidOptionError: A column is missing, or there is not one body for the replies.
    """
    missing = [name for name in _NEEDED if name not in requests.columns]
    if missing:
        raise InvalidOptionError(
            f"Replies need the column {', '.join(missing)} of their requests: keep the columns that were read."
        )
    if (text is None) == (body is None):
        raise InvalidOptionError("A reply has one body: give either text or body.")
    columns = [
        _destination(without).alias("destination"),
        _correlation_id(requests).alias("correlation_id"),
        *([f.col("priority")] if "priority" in requests.columns else []),
        *([] if text is None else [(f.col(text) if isinstance(text, str) else text).alias("text")]),
        *([] if body is None else [body.alias("body")]),
        *([] if properties is None else [properties.alias("properties")]),
    ]
    asked = requests.filter(f.col("reply_to").isNotNull()) if without == "skip" else requests
    return asked.select(*columns)


def _destination(without: str) -> Column:
    reply_to = f.col("reply_to")
    if without == "skip":
        return reply_to
    if without == "fail":
        said = f.concat(
            f.lit("The message "),
            f.coalesce("message_id", f.lit("(without id)")),
            f.lit(" has no reply_to: filter such rows, or pass without='skip' or the name of a queue to replies()."),
        )
        return f.when(reply_to.isNull(), f.raise_error(said)).otherwise(reply_to)
    return f.coalesce(reply_to, f.lit(str(Queue(without))))


def _correlation_id(requests: DataFrame) -> Column:
    """Return the id by which the requester knows its request, also if the job has retried it (`dead_letter`)."""
    known = [f.nullif(f.col("correlation_id"), f.lit(""))]
    if "properties" in requests.columns and isinstance(requests.schema["properties"].dataType, MapType):
        known.append(f.col("properties")[FIRST_ID])
    return f.coalesce(*known, "message_id")
