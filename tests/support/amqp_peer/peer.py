"""A listening socket on loopback whose connections follow a script or a small broker."""

import socket
import threading
from collections import Counter
from concurrent.futures import Future
from contextlib import suppress

from amqp_peer.connection import Gone, Line
from amqp_peer.service import Service, Store

__all__ = ["SECONDS", "Broker", "Peer"]


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


SECONDS = 30


class Peer:
    """Answers connections one after the other.

    Args:
        converse: Answers one connection, given its `Line` and this peer, until it raises `Gone`.
        wrap: Makes the accepted socket a TLS one.

    Attributes:
        address: Host and port.
        lines: The connections so far.
        stuck: Done when something stays unanswered on purpose.
    """

    def __init__(self, converse, *, wrap=lambda plain: plain):
        self._converse, self._wrap = converse, wrap
        self._server = socket.create_server(("127.0.0.1", 0))
        self._failure = None
        self._closing = False
        self._client = None
        self.cut = None  # of the next connection
        self.lines = []
        self.stuck = Future()
        self.address = "{}:{}".format(*self._server.getsockname())
        self._thread = threading.Thread(target=self._run, name="amqp-peer")
        self._thread.start()

    def leave_unanswered(self):
        """Say that an answer is withheld: whoever waits may give up."""
        if not self.stuck.done():
            self.stuck.set_result(None)

    def close(self):
        """End the thread, and raise what went wrong on it."""
        self._closing = True
        for end in (self._server, self._client):
            with suppress(OSError):
                if end is not None:
                    end.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), "the peer does not end"
        if self._failure is not None:
            raise self._failure

    def _run(self):
        while not self._closing:
            try:
                plain, _ = self._server.accept()
            except OSError:
                return
            with suppress(OSError):  # a client that does not like the certificate
                self._answer(plain)
            plain.close()

    def _answer(self, plain):
        self._client = plain
        with self._wrap(plain) as self._client:
            self._client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            line, self.cut = Line(self._client, self.cut), None
            self.lines.append(line)
            try:
                self._converse(line, self)
            except Gone:
                pass
            except Exception as error:  # noqa: BLE001  # the test is told when it closes the peer
                self._failure = self._failure or error
                self.leave_unanswered()
