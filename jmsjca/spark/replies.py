"""Replies of a job to the messages that it has read, and reports of what became of them."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import MapType

from jmsjca.destinations import Queue
from jmsjca.errors import InvalidOptionError
from jmsjca.spark.rejections import FIRST_ID

__all__ = ["replies", "reports"]

_NEEDED = ("message_id", "correlation_id", "reply_to")
_UNSET = ("", "0", "false")
_QUEUE_URI = "^queue:queue://[^/?]*/([^?]+).*$"


def replies(
    requests: DataFrame,
    text: Column | str | None = None,
    *,
    body: Column | None = None,
    properties: Column | None = None,
    without: str = "skip",
) -> DataFrame:
    """Return the table of replies, which ``format("jms")`` sends: each row to the ``reply_to`` of its request.

    A reply gets the correlation id of its request, or the request's message id if it has none (JMS 3.1, section 3.4.5).
    It also gets the priority of the request, but not its properties.

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
    _check_columns(requests, "Replies", *_NEEDED)
    if (text is None) == (body is None):
        raise InvalidOptionError("A reply has one body: give either text or body.")
    columns = [
        _destination(without).alias("destination"),
        _correlation_id(requests).alias("correlation_id"),
        *([f.col("priority")] if "priority" in requests.columns else []),
        *([] if text is None else [_column(text).alias("text")]),
        *([] if body is None else [body.alias("body")]),
        *([] if properties is None else [properties.alias("properties")]),
    ]
    asked = requests.filter(f.col("reply_to").isNotNull()) if without == "skip" else requests
    return asked.select(*columns)


def reports(requests: DataFrame, error: Column | str | None = None, *, text: Column | str | None = None) -> DataFrame:
    """Return the table of reports, which ``format("jms")`` sends to the requests that ask for one.

    A request asks for a report of success by the property ``JMS_IBM_Report_PAN``, for one of failure by
    ``JMS_IBM_Report_NAN``. It has a ``reply_to``, and ``JMS_IBM_MsgType`` is 8 or not set. The correlation id of a
    report is the message id of the request, or, with ``JMS_IBM_Report_Pass_Correl_ID``, its correlation id.

    Args:
        requests: Rows that were read with ``format("jms")``, with the columns ``message_id``, ``correlation_id``,
            ``reply_to`` and ``properties``.
        error: The failure of each row, a column or the name of one: null means success. None if all succeeded. It is
            the body of a report of failure.
        text: The body of a report of success: a column, or the name of one. None sends empty texts.

    Raises:
        InvalidOptionError: A column is missing.
    """
    from jmsjca.connector import outcomes as codes  # workers do without the connector
    from jmsjca.connector import outcomes as names

    _check_columns(requests, "Reports", *_NEEDED, "properties")
    failure = f.lit(None).cast("string") if error is None else _column(error).cast("string")
    success = f.lit(None).cast("string") if text is None else _column(text)
    succeeded, kind = failure.isNull(), f.col("properties")[names.MESSAGE_TYPE]
    columns = [
        _reply_queue().alias("destination"),
        f.when(_is_set(names.PASS_ID), f.col("correlation_id"))
        .otherwise(_request_id(requests))
        .alias("correlation_id"),
        f.coalesce(failure, success, f.lit("")).alias("text"),
        f.struct(
            f.lit(names.REPORT).alias(names.MESSAGE_TYPE),
            f.when(succeeded, codes.MQFB_PAN).otherwise(codes.MQFB_NAN).alias(names.FEEDBACK),
        ).alias("properties"),
    ]
    asked = f.when(succeeded, _is_set(names.PAN)).otherwise(_is_set(names.NAN))
    is_request = f.coalesce(kind, f.lit(str(names.DATAGRAM))) == str(names.DATAGRAM)
    return requests.filter(asked & is_request).select(*columns).filter(f.col("destination").isNotNull())


def _check_columns(requests: DataFrame, what: str, *needed: str) -> None:
    missing = [name for name in needed if name not in requests.columns]
    if missing:
        raise InvalidOptionError(
            f"{what} need the column {', '.join(missing)} of their requests: keep the columns that were read."
        )


def _column(given: Column | str) -> Column:
    return f.col(given) if isinstance(given, str) else given


def _is_set(name: str) -> Column:
    return ~f.coalesce(f.col("properties")[name], f.lit("")).isin(*_UNSET)


def _reply_queue() -> Column:
    """Return the ``reply_to``. If its name is a queue URI, it is the queue; the manager is not used."""
    reply_to = f.col("reply_to")
    name = f.try_url_decode(f.regexp_replace(f.regexp_extract(reply_to, _QUEUE_URI, 1), r"\+", "%2B"))
    return f.when(reply_to.rlike(_QUEUE_URI), f.concat(f.lit("queue:"), name)).otherwise(reply_to)


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
    return f.coalesce(f.nullif(f.col("correlation_id"), f.lit("")), _request_id(requests))


def _request_id(requests: DataFrame) -> Column:
    """Return the message id of a request. For a retry, return the id of the first message."""
    if "properties" in requests.columns and isinstance(requests.schema["properties"].dataType, MapType):
        return f.coalesce(f.col("properties")[FIRST_ID], "message_id")
    return f.col("message_id")
