"""AMQP 1.0 transactions by proton's engine, frame by frame: pytest shows the frames when a test fails."""

import uuid

from proton import Described, Message, Terminus, Transport, symbol, ulong
from proton.reactor import Container, LinkOption
from proton.utils import BlockingConnection

DECLARE, DISCHARGE, DECLARED, TRANSACTIONAL = 0x31, 0x32, 0x33, 0x34
ACCEPTED, REJECTED, RELEASED, MODIFIED = 0x24, 0x25, 0x26, 0x27
SECONDS = 10


class _Coordinator(LinkOption):
    def apply(self, link):
        link.target.type = Terminus.COORDINATOR
        link.target.capabilities.put_object(symbol("amqp:local-transactions"))


class _Place(LinkOption):
    """A durable source or target, of the capability that makes it a queue."""

    def __init__(self, end, capability):
        self.end, self.capability = end, capability

    def apply(self, link):
        place = getattr(link, self.end)
        place.durability = Terminus.CONFIGURATION
        if self.capability:
            place.capabilities.put_object(symbol(self.capability))


class RawAMQP:
    """A connection of one session.

    Args:
        url: The broker.
        capability: What its sources and targets ask for.
        container_id: What it calls itself; None for a name of its own.
        **opening: What its open frame asks for.
    """

    def __init__(self, url, capability=None, *, container_id=None, **opening):
        self._capability = capability
        container = Container()
        container.container_id = container_id or container.container_id
        self.connection = BlockingConnection(
            url, timeout=SECONDS, container=container, allowed_mechs="ANONYMOUS", **opening
        )
        self.connection.conn.transport.trace(Transport.TRACE_FRM)
        self._coordinator = None

    def send(self, address, *bodies):
        """Send messages, without a transaction."""
        sender = self.connection.create_sender(address, options=_Place("target", self._capability))
        for body in bodies:
            sender.send(Message(body=body, durable=True))
        sender.close()

    def send_encoded(self, address, *payloads):
        """Send the bytes of messages, which may be anything, and wait until the broker has accepted each."""
        sender = self.connection.create_sender(address, options=_Place("target", self._capability))
        for payload in payloads:
            delivery = sender.link.delivery(uuid.uuid4().hex)
            sender.link.send(payload)
            sender.link.advance()
            self.connection.wait(lambda: delivery.remote_state, msg="an answer")  # noqa: B023  # it is called here
            assert delivery.remote_state == ACCEPTED
        sender.close()

    def senders(self, address):
        """Attach a link to a destination, and one to any."""
        own = self.connection.create_sender(address, options=_Place("target", self._capability))
        return own.link, self.connection.create_sender(None).link

    def post(self, link, body, transaction, *, settled=False):
        """Send a message in a transaction, and do not wait for the answer, or have none if it is settled."""
        delivery = link.delivery(uuid.uuid4().hex)
        delivery.local.data = [transaction]
        delivery.update(TRANSACTIONAL)
        link.send(Message(body=body, durable=True).encode())
        link.advance()
        if settled:
            delivery.settle()
        return delivery

    def receiver(self, address, credit):
        """Attach a receiver."""
        return self.connection.create_receiver(address, credit=credit, options=_Place("source", self._capability))

    def take(self, receiver, count):
        """Receive so many messages: their deliveries by their bodies."""
        taken = {}
        for _ in range(count):
            body = receiver.receive(timeout=SECONDS).body
            taken[body] = receiver.fetcher.unsettled[-1]
        return taken

    def attach_coordinator(self):
        """Ask for the transaction coordinator in a session of its own, and do not wait for the answer."""
        session = self.connection.conn.session()
        session.open()
        link = session.sender("coordinator")
        _Coordinator().apply(link)
        link.open()
        return link

    def declare(self):
        """Begin a transaction, and give its id."""
        if self._coordinator is None:
            name = f"coordinator-{uuid.uuid4().hex}"
            self._coordinator = self.connection.create_sender(None, name=name, options=_Coordinator())
        delivery = self._command(DECLARE, [None])
        assert delivery.remote_state == DECLARED, delivery.remote.condition
        return delivery.remote.data[0]

    def discharge(self, transaction, *, fail=False):
        """End a transaction, and give the state of that: ACCEPTED or REJECTED."""
        return self._command(DISCHARGE, [transaction, fail]).remote_state

    def settle(self, delivery, transaction, outcome=ACCEPTED, fields=()):
        """Give a delivery an outcome inside a transaction; it is settled with it."""
        delivery.local.data = [transaction, Described(ulong(outcome), list(fields))]
        delivery.update(TRANSACTIONAL)
        delivery.settle()

    def close(self):
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def _command(self, descriptor, fields):
        link = self._coordinator.link
        delivery = link.delivery(uuid.uuid4().hex)
        link.send(Message(body=Described(ulong(descriptor), fields)).encode())
        link.advance()
        self.connection.wait(lambda: delivery.remote_state, msg="an answer of the coordinator")
        delivery.settle()
        return delivery
