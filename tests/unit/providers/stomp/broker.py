"""A broker in the test process over a real socket: queues, transactions, and one fault at a chosen point."""

import socket
import threading
from contextlib import suppress
from typing import NamedTuple

from tests.unit.providers.stomp.broker_sessions import session_of


class Fault(NamedTuple):
    """What goes wrong at which place: cut, refuse, noise, silence from here on, or withhold: one answer."""

    kind: str
    place: int
    text: str = "refused"  # what a refusal says


class Peer:
    """Serves until it is left. The fault happens once.

    Attributes:
        connected: The headers of its answer to CONNECT.
        queues: What they hold, as a restarted broker would find it.
        places: The frames of the conversation, in the order of their places.
        broken: True once the fault has happened.
    """

    def __init__(self, fault=None, *, connected=None, beats="0,0"):
        self.queues, self.places, self.broken = {}, [], False
        self._fault = fault
        self.refusal = fault.text if fault else ""
        self.connected = {"version": "1.2", "server": "ActiveMQ/6.3.1", "heart-beat": beats}
        self.connected = {k: v for k, v in (self.connected | (connected or {})).items() if v is not None}
        self._numbers, self._lock = 0, threading.RLock()
        self._server = socket.create_server(("127.0.0.1", 0))
        self._threads, self._sockets = [], []

    @property
    def url(self):
        return f"stomp://127.0.0.1:{self._server.getsockname()[1]}"

    def __enter__(self):
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown(socket.SHUT_RDWR)
        self._accepting.join(30)
        self._server.close()
        self.cut()
        self.settle_down()

    def cut(self):
        """End all connections."""
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def settle_down(self):
        """Wait until every connection has ended and given back what it held."""
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(30)

    def heal(self):
        """Let nothing break any more; a client that gave up early may not have come to the fault."""
        self._fault = None

    def withhold_next(self, frame):
        """Let the broker not send the next frame of a kind."""
        with self._lock:
            self._fault, self.broken = Fault("withhold", -1, frame), False

    def left(self, queue):
        """The bodies that a queue holds."""
        return [letter.body.decode() for letter in self.queues.get(queue, [])]

    def _accept(self):
        with suppress(OSError):
            while True:
                client = self._server.accept()[0]
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._sockets.append(client)
                session = session_of(self.connected.get("server"))(self, client)
                with self._lock:
                    self._threads.append(threading.Thread(target=session.serve))
                    self._threads[-1].start()

    def at(self, frame):
        """Count a place, and tell what happens there."""
        with self._lock:
            self.places.append(frame)
            if self._fault is None or self.broken or not self._is_place(frame):
                return None
            self.broken = True
            return self._fault.kind

    def _is_place(self, frame):
        if self._fault.place < 0:
            return frame == self._fault.text
        return len(self.places) - 1 == self._fault.place

    def name(self):
        self._numbers += 1
        return f"m{self._numbers}"
