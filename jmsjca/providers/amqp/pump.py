"""Bytes between a socket and proton's transport."""

import socket
import ssl
from contextlib import suppress

from proton import ProtonException, Transport

from jmsjca.providers.amqp.proton_calls import Buffer, capacity, peek, pending, pointer_to, pop, push
from jmsjca.providers.network import acknowledge_quickly

__all__ = ["Pump"]

_READS_PER_TURN = 4
_PROTONS_ROOM = 8192  # bytes; it encodes all that there is as long as its buffer is not full
_WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Pump:
    """Reads and writes as far as that goes without waiting.

    Args:
        sock: The socket, not blocking.
        transport: Proton's transport.
        buffer: What to read into and to write from; others may use it in between.
    """

    def __init__(self, sock: socket.socket, transport: Transport, buffer: Buffer) -> None:
        self._socket = sock
        self._transport = transport
        self._pointer = pointer_to(transport)
        self._buffer = buffer
        self._owes_receipt = False
        # Less than that, and nothing more is there; but TLS gives a record at a time.
        self._full = 0 if isinstance(sock, ssl.SSLSocket) else buffer.size

    def check(self) -> None:
        """Raise `ProtonException` if proton reads no more, which it does not always say."""
        if capacity(self._pointer) < 0 and self._transport.capacity() < 0:  # which may tell more
            raise ProtonException("what the broker sent is no AMQP")

    def read(self, times: int = _READS_PER_TURN) -> None:
        """Read what there is, in so many pieces at most."""
        for _ in range(times):
            if capacity(self._pointer) <= 0:
                return
            try:
                size = self._socket.recv_into(self._buffer.view)
            except _WOULD_BLOCK:
                return
            if not size:
                self._transport.close_tail()
                return
            self._push(size)
            self._owes_receipt = True
            if size < self._full:
                return

    def acknowledge(self) -> None:
        """Let TCP acknowledge what was read, before a wait; what was written since has done so."""
        if self._owes_receipt:
            self._owes_receipt = False
            acknowledge_quickly(self._socket)

    def last_word(self) -> ssl.SSLError | None:
        """The alert with which the broker hung up; a write that fails hides it."""
        try:
            self.read()
        except ssl.SSLError as alert:
            return alert
        except (OSError, ProtonException):
            pass
        return None

    def _push(self, size: int) -> None:
        """Proton takes some 16 KB at a time."""
        at = 0
        while at < size:
            taken = push(self._pointer, self._buffer, at, size)
            if taken < 0:  # it has failed, and its events tell why
                return
            if not taken:
                raise ProtonException("proton takes nothing more of what the broker sent")
            at += taken

    def encode(self) -> bool:
        """Let proton encode what is to be written, so that it is written before what comes later.

        False if that is more than proton surely has room for, and the socket did not take all of it, either.
        """
        return 0 <= pending(self._pointer) < _PROTONS_ROOM or not self.write_ahead()

    def write_ahead(self) -> bool:
        """Write within a step, so that the broker has something to do meanwhile; True if not all was taken."""
        with suppress(OSError):  # the end of the turn meets it again, and the connection ends
            return self.write()
        return True

    def write(self) -> bool:
        """Write what there is; True if the socket did not take all of it."""
        while (size := peek(self._pointer, self._buffer)) > 0:
            try:
                pop(self._pointer, self._socket.send(self._buffer.view[:size]))
                self._owes_receipt = False
            except _WOULD_BLOCK:
                return True
        return False
