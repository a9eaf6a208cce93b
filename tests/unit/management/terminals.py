"""Terminals of some columns, on which commands run in this process or in one of their own."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
import uuid
from pathlib import Path

from jmsjca.__main__ import run

ROOT = Path(__file__).parents[3]


class Terminal:
    """A terminal of some columns, which the standard output is while a command runs."""

    def __init__(self, monkeypatch, columns):
        self._patch, self.columns = monkeypatch, columns

    def run(self, *arguments, stream="stdout"):
        """Run a command; return its exit status and the lines that the terminal shows of a stream."""
        return self.show(lambda: run(arguments), stream)

    def show(self, act, stream="stdout"):
        """Call a function; return its result and the lines that the terminal shows."""
        terminal, own = self._open()
        shown = _Shown(terminal)
        with os.fdopen(own, "w") as output, self._patch.context() as patched:
            patched.setattr(sys, stream, output)
            patched.setattr(sys, f"__{stream}__", output)  # whose size is that of the terminal
            result = act()
        return result, shown.lines()

    def start(self, *arguments, **environment):
        """Run ``jmsjca`` in a process of its own, with the terminal as its output; what it logs is in ``errors``."""
        terminal, own = self._open()
        shown = _Shown(terminal, Path(f"errors-{uuid.uuid4().hex}.txt"))
        with shown.errors.open("w") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "jmsjca", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=own,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": f"{ROOT}", **environment},
            )
        os.close(own)
        return process, shown

    def _open(self):
        terminal, own = pty.openpty()
        fcntl.ioctl(own, termios.TIOCSWINSZ, struct.pack("HHHH", 40, self.columns, 0, 0))
        return terminal, own


class _Shown:
    """What a terminal shows."""

    def __init__(self, terminal, errors=None):
        self._terminal, self._parts, self.errors = terminal, [], errors
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        try:
            while data := os.read(self._terminal, 65536):
                self._parts.append(data)
        except OSError:  # the other side is closed
            return

    @property
    def bytes(self):
        """All that was written until now."""
        return b"".join(self._parts)

    def lines(self):
        """Return the lines, when all programs have closed the terminal."""
        self._reader.join()
        os.close(self._terminal)
        return self.bytes.decode().replace("\r\n", "\n").splitlines()
