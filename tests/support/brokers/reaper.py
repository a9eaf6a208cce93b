"""Ends the brokers of a test run that was killed: a process that lives until the run's end of a pipe is closed."""

import os
import shutil
import sys
from contextlib import suppress
from functools import cache

import psutil


def watch(process, folder):
    """End a process, and remove its folder, when this process is gone. One that has ended by then is left."""
    os.write(_reaper(), f"{process.pid} {process.create_time()!r} {folder}\n".encode())


@cache
def _reaper():
    """Start the reaper in a session of its own: what ends the whole group of the test run does not end it.

    Returns the end of the pipe that closes with this process.
    """
    read, write = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, read, 0)]
    os.posix_spawn(sys.executable, [sys.executable, __file__], os.environ, file_actions=actions, setsid=True)
    os.close(read)
    return write


def _reap(lines):
    for line in lines:
        pid, born, folder = line.rstrip("\n").split(" ", 2)
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(int(pid))
            if process.create_time() == float(born):  # else the number is another's by now
                for each in (*process.children(recursive=True), process):
                    with suppress(psutil.NoSuchProcess):
                        each.kill()
                shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _reap(sys.stdin.readlines())  # returns when the test run has ended
