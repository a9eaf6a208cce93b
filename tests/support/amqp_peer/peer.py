"""A listening socket on loopback, whose connections are answered by a script or by a small broker, on one thread."""

import socket
import threading
from concurrent.futures import Future
from contextlib import suppress

from amqp_peer.line import Gone, Line

__all__ = ["SECONDS", "Peer"]

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
