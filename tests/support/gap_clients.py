"""Clients that speak STOMP by hand to one queue or topic: what the evidence of gaps is seen with."""

import uuid
from functools import partial

import pytest
from raw_stomp import RawSTOMP

ONE_AHEAD = {"artemis": "consumer_window_size", "activemq": "activemq.prefetchSize", "rabbitmq": "prefetch_count"}
ONE_AHEAD["rabbitmq4"] = ONE_AHEAD["rabbitmq"]
_ROUTING = {"queue": "ANYCAST", "topic": "MULTICAST"}


class Client:
    """One connection, and one destination of its broker."""

    def __init__(self, raw, broker, name, kind):
        self.raw, self._routing = raw, _ROUTING[kind] if broker == "artemis" else None
        self.destination = name if broker == "artemis" else f"/{kind}/{name}"

    def send(self, body, **headers):
        routing = {"destination_type": self._routing} if self._routing else {}
        headers = {"destination": self.destination, "persistent": "true", **routing, **headers}
        return self.raw.confirm("SEND", body, **headers)

    def subscribe(self, ack="client-individual", **headers):
        self.raw.write("SUBSCRIBE", **self._subscription(ack=ack, **headers))

    def joins(self, **headers):
        """Subscribe, and tell what the broker says to that."""
        return self.raw.confirm("SUBSCRIBE", **self._subscription(ack="client-individual", **headers))

    def read(self):
        command, headers, body = self.raw.read()
        assert command == "MESSAGE", (command, headers, body)
        return body, headers

    def bodies(self, count):
        return [self.read()[0] for _ in range(count)]

    def leave(self):
        self.raw.close()

    def leave_at_once(self):
        self.raw._socket.close()

    def _subscription(self, **headers):
        routing = {"subscription_type": self._routing} if self._routing else {}
        return {"destination": self.destination, "id": "1", **routing, **headers}


@pytest.fixture
def client(broker_url):
    """Give a function that connects to a broker; all clients of a test share a queue."""
    yield from _clients(broker_url, "queue")


@pytest.fixture
def listener(broker_url):
    """The same with a topic."""
    yield from _clients(broker_url, "topic")


def _clients(broker_url, kind):
    opened = []
    yield partial(_connect, broker_url, f"gap.{uuid.uuid4().hex}", kind, opened)
    for each in opened:
        each.leave_at_once()


def _connect(broker_url, name, kind, opened, broker, **connect):
    opened.append(Client(RawSTOMP(broker_url(f"{broker}-stomp"), **connect), broker, name, kind))
    return opened[-1]
