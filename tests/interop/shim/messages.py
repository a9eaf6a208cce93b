"""Messages as Apache's interop suite writes them in JSON, and as ours."""

from jms_java.described import told_destination

from jmsjca import Queue, Topic
from jmsjca.messages import BytesMessage, MapMessage, Message, StreamMessage, TextMessage
from tests.interop.shim.values import read_value, written

__all__ = ["KINDS", "make", "tell"]

KINDS = ("MESSAGE", "BYTESMESSAGE", "MAPMESSAGE", "STREAMMESSAGE", "TEXTMESSAGE")
_BYTES_ID = "ID:AMQP_BINARY:"
_OURS = ("_jmsjca", "amq-msg-type", "content-length")  # what STOMP adds, for Java to see


def make(kind, told, headers, properties):
    """Make a message.

    Args:
        kind: The type as the suite names it, such as ``JMS_MAPMESSAGE_TYPE``.
        told: Number, type and value of what is in it.
        headers: The headers of all messages, each with its type and its value.
        properties: The properties of all messages, each with its type and its value.
    """
    value = read_value(told["type"], told["value"])
    message = _with_body(kind.removeprefix("JMS_").removesuffix("_TYPE"), told, value)
    for name, each in properties.items():
        message.set_object_property(name, read_value(each["type"], each["value"]))
    _set_headers(message, headers)
    return message


def tell(number, told):
    """Return a received message as JSON.

    Args:
        number: Its place among those that were received.
        told: The message as `describe` tells it.
    """
    kind, value = _body(told)
    answer = {"index": number, "type": kind, "value": value}
    headers = _headers(told)
    properties = {
        name: dict(zip(("type", "value"), written(each), strict=True))
        for name, each in told["properties"].items()
        if not name.startswith(("JMS", *_OURS))
    }
    more = {"headers": headers, "properties": properties}
    return answer | {name: part for name, part in more.items() if part}


def _with_body(kind, told, value):
    if kind == "MESSAGE":
        return Message()
    if kind == "TEXTMESSAGE":
        return TextMessage(value)
    if kind == "STREAMMESSAGE":
        return StreamMessage([value])
    if kind == "MAPMESSAGE":
        return MapMessage({f"{told['type']}_{told['index']:03d}": value})
    message = BytesMessage()
    if value is not None:
        message.write_object(value)
    return message


def _set_headers(message, headers):
    for name, told in headers.items():
        kind, value = (told["type"], told["value"]) if isinstance(told, dict) else ("string", told)
        if name == "JMSCorrelationID":
            message.correlation_id = f"{_BYTES_ID}{value.upper()}" if kind == "bytes" else value
        elif name == "JMSReplyTo":
            message.reply_to = (Topic if kind == "topic" else Queue)(value)
        elif name == "JMSType":
            message.type = value


def _headers(told):
    headers = {}
    if (correlation := told["correlation_id"]) is not None:
        headers["JMSCorrelationID"] = correlation
        if correlation.startswith(_BYTES_ID):
            value = correlation.removeprefix(_BYTES_ID).lower()
            headers["JMSCorrelationID"] = {"type": "bytes", "value": value}
    if (reply_to := told_destination(told["reply_to"])) is not None:
        headers["JMSReplyTo"] = {"type": reply_to[0], "value": reply_to[1]}
    if told["type"] is not None:
        headers["JMSType"] = told["type"]
    return headers


def _body(told):
    kind, body = told["kind"], told["body"]
    if kind == "text":
        return "text", None if body is None else body[1]
    if kind == "bytes":
        return written(body) if body is not None else ("bytes", "")
    values = {"map": lambda: list(body.values()), "stream": lambda: body}.get(kind, list)()
    return written(values[0]) if values else ("none", None)
