"""Bytes between a socket and proton's transport."""

import socket
import ssl

from proton import ProtonException, Transport

from jmsjca.providers.network import acknowledge_quickly

__all__ = ["Pump"]

_READ = 65536
_READS_PER_TURN = 16
_WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Pump:
    """Reads and writes as far as that goes without waiting.

    Args:
        sock: The socket, not blocking.
        transport: Proton's transport.
    """

    def __init__(self, sock: socket.socket, transport: Transport) -> None:
        self._socket = sock
        self._transport = transport

    def check(self) -> None:
        """Raise `ProtonException` if proton reads no more, which it does not always say."""
        if self._transport.capacity() < 0:
            raise ProtonException("what the broker sent is no AMQP")

    def read(self, times: int = _READS_PER_TURN) -> None:
        """Read what there is, in so many pieces at most."""
        for _ in range(times):
            room = self._transport.capacity()
            if room <= 0:
                return
            try:
                data = self._socket.recv(min(room, _READ))
            except _WOULD_BLOCK:
                return
            if not data:
                self._transport.close_tail()
                return
            self._transport.push(data)
            acknowledge_quickly(self._socket)

    def write(self) -> bool:
        """Write what there is; True if the socket did not take all of it."""
        while (size := self._transport.pending()) > 0:
            data = self._transport.peek(size)
            if not data:
                return False
            try:
                self._transport.pop(self._socket.send(data))
            except _WOULD_BLOCK:
                return True
        return False
