"""STOMP by hand on a socket, with every frame printed: pytest shows them when a test fails."""

import re
import socket
from urllib.parse import urlsplit


class RawSTOMP:
    def __init__(self, url, **connect):
        parts = urlsplit(url)
        self._socket = socket.create_connection((parts.hostname, parts.port), timeout=10)
        self._buffer = b""
        self._receipts = 0
        login = {"login": parts.username, "passcode": parts.password} if parts.username else {}
        self.connected = self.talk("CONNECT", "CONNECTED", accept_version="1.2", host="/", **login, **connect)

    def write(self, command, body="", **headers):
        """Write a frame, with _ for - in the names of its headers, unless they begin with it."""
        lines = "".join(f"{_written(name)}:{value}\n" for name, value in headers.items())
        print(f">>> {command} {headers} {body}")
        content = body if isinstance(body, bytes) else body.encode()
        self._socket.sendall(f"{command}\n{lines}\n".encode() + content + b"\0")

    def talk(self, command, answer, body="", **headers):
        """Write a frame and read the one that answers it."""
        self.write(command, body, **headers)
        command, headers, body = self.read()
        assert command == answer, (command, headers, body)
        return headers

    def confirm(self, command, body="", **headers):
        """Write a frame, and give what the broker says to it: RECEIPT or ERROR."""
        self._receipts += 1
        self.write(command, body, receipt=f"r{self._receipts}", **headers)
        return self.read()[0]

    def read(self):
        """Read a frame: its command, its headers, its body."""
        while b"\0" not in self._buffer:
            data = self._socket.recv(65536)
            assert data, "The broker ended the connection."
            self._buffer += data
        frame, _, self._buffer = self._buffer.lstrip(b"\r\n").partition(b"\0")
        head, _, body = frame.decode().partition("\n\n")
        command, *lines = head.split("\n")
        print(f"<<< {command} {lines} {body}")
        return command, dict(re.match("([^:]*):(.*)", line).groups() for line in lines), body

    def close(self):
        self.confirm("DISCONNECT")
        self._socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()


def _written(name):
    return name if name.startswith("_") else name.replace("_", "-")
