"""A small broker: queues and transactions that outlive connections, until a test tells it to answer otherwise."""

from collections import Counter

from amqp_peer.service import Service
from amqp_peer.store import Store

__all__ = ["Broker"]


class Broker:
    """Answers connections; what it keeps outlives them.

    Args:
        product: What it calls itself.
        mechanisms: The logins that it offers.
        offers: The capabilities that its open frame offers.

    Attributes:
        store: The queues.
        instead: What to do with frames of a type, instead of what a broker does: ``broker.instead[Open] = withhold``.
            Commands to the coordinator have the types `Declare` and `Discharge`.
    """

    def __init__(self, product="apache-activemq-artemis", mechanisms=("ANONYMOUS",), offers=()):
        self.product, self.mechanisms, self.offers = product, mechanisms, offers
        self.store = Store()
        self.instead = {}
        self.seen = Counter()

    def __call__(self, line, peer):
        service = Service(self, line, peer)
        try:
            while True:
                service.handle(line.read())
        finally:
            service.let_go()
