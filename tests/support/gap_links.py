"""Links to brokers by proton alone, with which tests show what brokers lack."""

import uuid
from contextlib import suppress

import pytest
from proton import Endpoint, Link, Message, ProtonException, Terminus, symbol
from proton.reactor import LinkOption
from raw_amqp import RawAMQP

from jmsjca.testing.contract.network import FaultProxy

# What makes a terminus a queue.
QUEUES = {"artemis": "queue", "activemq": "queue"}


class With(LinkOption):
    """Configures a link by a function."""

    def __init__(self, configure):
        self._configure = configure

    def apply(self, link):
        self._configure(link)


def send(connection, to, *messages):
    sender = connection.connection.create_sender(to, name=uuid.uuid4().hex, options=_place(connection, "target"))
    for message in messages:
        sender.send(message if isinstance(message, Message) else Message(body=message, durable=True))


class Receiver:
    """A receiver, in a session of its own, with exactly the credit that it is given."""

    def __init__(self, connection, address, credit, configure=lambda link: None, name=None):
        self._connection = connection.connection
        self.session = self._connection.conn.session()
        self.session.open()
        self.link = self.session.receiver(name or uuid.uuid4().hex)
        self.link.source.address = address
        _place(connection, "source").apply(self.link)
        configure(self.link)
        self.link.open()
        self._connection.wait(lambda: self.link.state & Endpoint.REMOTE_ACTIVE, msg="an attach")
        self.link.flow(credit)

    def take(self):
        """Receive a message: itself and its delivery."""
        self._connection.wait(lambda: self.link.current and not self.link.current.partial, msg="a message")
        message, delivery = Message(), self.link.current
        message.decode(self.link.recv(delivery.pending))
        self.link.advance()
        return message, delivery

    def bodies(self, count):
        return [self.take()[0].body for _ in range(count)]

    def end(self):
        """Wait until the broker ends the session: why."""
        self._connection.wait(lambda: self.session.state & Endpoint.REMOTE_CLOSED, msg="the end of the session")
        return self.session.remote_condition


def end_over_a_sender(connection, configure):
    """Attach a sender for which a broker ends its session: why."""
    session = connection.connection.conn.session()
    session.open()
    sender = session.sender(uuid.uuid4().hex)
    configure(sender.target)
    sender.open()
    connection.connection.wait(lambda: session.state & Endpoint.REMOTE_CLOSED, msg="the end of the session")
    return session.remote_condition


def _place(connection, end):
    def configure(link):
        place = getattr(link, end)
        place.durability = Terminus.CONFIGURATION
        if connection._capability:
            place.capabilities.put_object(symbol(connection._capability))

    return With(configure)


@pytest.fixture
def amqp(broker_url):
    """Give a function that connects to a broker, directly or through a wire to cut."""
    opened = []

    def connect(broker, url=None, **opening):
        connection = RawAMQP(url or broker_url(f"{broker}-amqp"), QUEUES.get(broker), **opening)
        opened.append((connection, url is not None))
        return connection

    yield connect
    for connection, may_be_cut in opened:
        if may_be_cut:
            connection.connection.timeout = 0  # nobody answers
        with suppress(ProtonException):
            connection.close()


@pytest.fixture
def wire(broker_url):
    wires = []
    yield lambda broker: wires.append(FaultProxy(broker_url(f"{broker}-amqp"))) or wires[-1]
    for each in wires:
        each.close()


@pytest.fixture
def address():
    name = f"gap.{uuid.uuid4().hex}"
    return lambda broker: f"/queue/{name}" if broker.startswith("rabbitmq") else name


assert Link  # proton puts its constants on its classes when it is imported
