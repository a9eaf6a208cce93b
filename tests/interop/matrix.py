"""Every client sends to every client on a broker, and the outcomes."""

import uuid
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from tests.interop.cases import GROUPS

__all__ = ["BROKERS", "Outcome", "exchange", "run"]


class Broker(NamedTuple):
    """The clients on a broker.

    Attributes:
        clients: The protocol of each.
        not_carried: The groups of messages that not all of them can carry.
        queue_names: The names of queues for clients that have other ones than ours.
    """

    clients: dict[str, str]
    not_carried: frozenset[str] = frozenset()
    queue_names: Mapping[str, str] = MappingProxyType({})


_AMQP = {"jmsjca": "amqp", "qpid-jms": "amqp"}
BROKERS = {
    "artemis": Broker(_AMQP),
    "qpid": Broker(_AMQP, frozenset({"reply to a topic"})),  # a topic there has the exchange in its name for Java
    "rabbitmq4": Broker(
        _AMQP,
        # A message of Java without a body ends the session, and Java tells the addresses of queues and topics.
        frozenset({"message", "reply to a queue", "reply to a topic"}),
        {"qpid-jms": "/queues/{}"},
    ),
    "activemq": Broker(
        {"jmsjca": "stomp", "openwire": "openwire"},
        frozenset(  # docs/reference/limits.md says why
            {
                *("message", "stream", "typed stream", "map with a character beyond U+FFFF"),
                *("correlation of bytes", "properties"),
            }
        ),
    ),
}
_ALIKE = {"string": "text", "binary": "bytes", "null": "none"}


class Outcome(NamedTuple):
    """What came of one group between two clients; None for equal."""

    sender: str
    receiver: str
    group: str
    problem: str | None


def run(clients, *, groups=GROUPS, with_only=None):
    """Exchange groups between all pairs of clients; with a name only between that client and the others.

    The first client is ours: it makes the queues, which some brokers take for topics if a stranger to JMS sends first.
    """
    for sender in clients:
        for receiver in clients:
            if with_only in {None, sender.name, receiver.name}:
                for name in (name for name in groups if sender.carries(name) and receiver.carries(name)):
                    problem = exchange(sender, receiver, GROUPS[name], declare=clients[0].declare)
                    yield Outcome(sender.name, receiver.name, name, problem)


def exchange(sender, receiver, group, *, declare):
    """Send a group and receive it; return None if what was received is what was sent, else the difference."""
    queue, expected = f"interop.{uuid.uuid4().hex}", group.expected()
    declare(queue)
    try:
        sender.send(queue, group)
        received = receiver.receive(queue, len(expected))
    except Exception as problem:  # noqa: BLE001  # whatever a client says is the outcome
        return f"{type(problem).__name__}: {problem}"
    for place, (one, other) in enumerate(zip(expected, received, strict=False)):
        if difference := _difference(one, other):
            return f"message {place}: {difference}"
    return None if len(received) == len(expected) else f"{len(received)} of {len(expected)} came"


def _difference(expected, received):
    return next(
        (
            f"{name} is {str(_plain(name, received.get(name)))[:200]}, not {str(_plain(name, value))[:200]}"
            for name, value in expected.items()
            if name != "index"  # some clients tell the id of the message instead
            and _plain(name, received.get(name)) != _plain(name, value)
        ),
        None,
    )


def _plain(name, value):
    """Clients of AMQP have other names for some types, and one of Java's tells every correlation id as bytes."""
    if name == "type":
        return _ALIKE.get(value, value)
    if name == "headers" and isinstance(value, dict):
        return {key: _bytes_of(told) if key == "JMSCorrelationID" else told for key, told in value.items()}
    return value


def _bytes_of(told):
    return told["value"].lower() if isinstance(told, dict) else told.encode().hex()
