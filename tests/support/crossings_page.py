"""Writes docs/reference/crossings.md from the recorded crossings: ``python -m tests.support.crossings_page``."""

from pathlib import Path

from tests.interop.crossings import BROKERS, WAYS, recorded

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "crossings.md"
NAMES = {
    "artemis": "Artemis 2.56.0",
    "activemq": "ActiveMQ Classic 6.3.1",
    "rabbitmq": "RabbitMQ 3.10.8",
    "rabbitmq4": "RabbitMQ 4.0.5",
    "qpid": "Qpid Broker-J 10.1.0",
    "openmq": "Open MQ 6.5.1",
}
CASES = {
    "full": "text, all headers",
    "bytes": "bytes",
    "map": "map",
    "gzip": "gzip",
    "delayed": "delayed",
    "reply": "reply",
}
LONGEST = 90  # characters of a value
HEAD = """\
<!-- Written by python -m tests.support.crossings_page: do not edit. -->
# Messages that cross protocols

Use this page when a message is sent by one client and received by another one, over the same protocol or another one.
Each cell names what differs from what was sent; `=` means no difference. For example, a text that a stomp.py script
sends to Artemis with `content-length`, its default, is a bytes message for a JMS client: `message: bytes`. An empty
`body:` is an empty body; `more properties` names properties that the sender has not set.

Qpid JMS (over AMQP) and OpenWire (ActiveMQ's client) are JMS clients in Java. proton (over AMQP) and stomp.py are
Python clients that do not know JMS.

Between two jmsjca clients nothing is lost without an error or a warning. From STOMP to AMQP, RabbitMQ 3 delivers no
properties, no type and no group, and a map as bytes; the receiver logs a warning for the queue: use one protocol
there. Over STOMP the header `_jmsjca`, and over AMQP on Artemis and RabbitMQ 4 the annotation `x-opt-jmsjca`, carry
the types of properties, the type, the group and the reply destination that the broker drops. Other clients ignore
both. Two crossings are refused with `MessageFormatError` when the message is read: a map, stream or object from AMQP
to STOMP on Artemis, which the broker delivers without its body, and each message from AMQP to STOMP on ActiveMQ.

The cells were measured by `python -m tests.interop.crossings`; `make test` repeats a sample, `make torture` all of
them. The message of the column *text, all headers* has a correlation id, type, reply destination, priority 7, a time
to live of 60 seconds, the group `g1`, and properties of five types. *gzip* is a body with the content encoding `gzip`.
*delayed* waits 1.5 seconds. *reply* shows whether an answer to the received reply destination arrives. `n/a` means
that the sender has no such feature there.

The second table of each broker shows how a message is redelivered after its receiver has returned it: by a release
(over STOMP `UNSUBSCRIBE`, in JMS a closed session), a reject (`NACK`, a rollback or recover), an orderly close of the
connection, and a cut of its socket. The number is the count of earlier deliveries that the receiver sees at the
redelivery, if it sees one. *redelivered* means that the message has the mark of a redelivered message, *as new* that
it has not. After a cut of an AMQP connection Artemis counts the delivery in some runs and not in others.
"""


def page():
    """Return the whole page."""
    found, parts = recorded(), [HEAD]
    for broker in BROKERS:
        rows = {key.partition(": ")[2]: told for key, told in found.items() if key.startswith(f"{broker}: ")}
        if rows:
            parts += [f"\n## {NAMES[broker]}\n", _table(rows), _returns(rows)]
    return "\n".join(parts)


def _table(rows):
    head = ["sender → receiver", *CASES.values()]
    body = [[_pair(pair), *(_cell(told.get(case, "n/a")) for case in CASES)] for pair, told in sorted(rows.items())]
    return _lines([head, ["---"] * len(head), *body])


def _returns(rows):
    head = ["sender → receiver", *WAYS]
    body = [[_pair(pair), *(_return(told.get(way, "n/a")) for way in WAYS)] for pair, told in sorted(rows.items())]
    return _lines([head, ["---"] * len(head), *body])


def _pair(pair):
    return pair.replace(" > ", " → ")


def _cell(told):
    if isinstance(told, str):
        return "n/a" if told == "not offered" else _short(told)
    if list(told) == ["reply"]:
        return _short(told["reply"])
    return "; ".join(f"{name}: {_short('none' if value is None else value)}" for name, value in told.items()) or "="


def _return(told):
    if isinstance(told, str):
        return "n/a" if told == "not offered" else _short(told)
    count = "" if told["count"] is None else f"{told['count']}, "
    mark = "redelivered" if told["redelivered"] else "as new"
    return f"{count}{mark}{', another message id' if 'message id' in told else ''}"


def _short(value):
    text = " ".join(str(value).split()).replace("|", "\\|").replace("<", "&lt;").replace("_", "\\_")
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


def _lines(rows):
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    PAGE.write_text(page())
