"""Says whether a broker serves a protocol yet; an open port alone does not prove it."""

import socket
import struct

from brokers.ports import HOST

AMQP, SASL = b"AMQP\x00\x01\x00\x00", b"AMQP\x03\x01\x00\x00"
SASL_INIT, OPEN, CLOSE = 0x41, 0x10, 0x18
REFUSED = b"\x00\x53\x1d"  # the error in a close
CONNECT = b"CONNECT\naccept-version:1.2\nhost:/\nlogin:jmsjca\npasscode:jmsjca\n\n\0"  # Open MQ lets nobody in without
SECONDS = 5


def serves(protocol, port):
    """Log in as a client of the protocol would."""
    try:
        with socket.create_connection((HOST, port), SECONDS) as connection, connection.makefile("rwb") as stream:
            return LOGINS[protocol](stream)
    except (OSError, EOFError):
        return False


def _stomp(stream):
    stream.write(CONNECT)
    stream.flush()
    return stream.read(len("CONNECTED")) == b"CONNECTED"


def _amqp(stream):
    """Open a connection and close it: a broker that is not ready yet answers with an error."""
    _authenticate(stream)
    host = HOST.encode()
    _send(stream, AMQP, _frame(0, OPEN, b"\xa1\x0cjmsjca-probe", b"\xa1" + bytes([len(host)]) + host))
    _exactly(stream, len(AMQP))
    _read_frame(stream)
    _send(stream, _frame(0, CLOSE))
    while (frame := _read_frame(stream))[2] != CLOSE:
        pass
    return REFUSED not in frame


def _authenticate(stream):
    _send(stream, SASL)
    _exactly(stream, len(SASL))
    _read_frame(stream)  # the mechanisms
    _send(stream, _frame(1, SASL_INIT, b"\xa3\x09ANONYMOUS"))
    _read_frame(stream)  # the outcome; where it is no, the broker closes


def _send(stream, *parts):
    stream.write(b"".join(parts))
    stream.flush()


def _frame(kind, code, *fields):
    body = b"".join(fields)
    performative = b"\x00\x53" + bytes([code, 0xC0, len(body) + 1, len(fields)]) + body
    return struct.pack(">IBBH", len(performative) + 8, 2, kind, 0) + performative


def _read_frame(stream):
    size, offset, _, _ = struct.unpack(">IBBH", _exactly(stream, 8))
    return _exactly(stream, size - 8)[offset * 4 - 8 :]


def _exactly(stream, size):
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _connects(stream):
    """To say more needs an authority, or a certificate."""
    del stream
    return True


LOGINS = {"amqp": _amqp, "stomp": _stomp, "amqps": _connects, "amqps-certified": _connects}
