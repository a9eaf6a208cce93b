"""Two processes at work on one file."""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from tests.benchmarks.contenders import Contender

__all__ = ["Pair"]

_PROCESSES = 2


class Pair:
    """A contender that lets two processes do half of the work each, at the same time.

    Args:
        make: Makes the contender of one process, there.
    """

    def __init__(self, make: Callable[[], Contender]) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pipes: list[Connection] = []
        self._processes: list[Any] = []
        for _ in range(_PROCESSES):
            ours, theirs = spawn.Pipe()
            process = spawn.Process(target=_serve, args=(theirs, make), daemon=True)
            process.start()
            theirs.close()  # or we would not learn of its end
            self._processes.append(process)
            self._pipes.append(ours)
            ours.recv()  # one after the other: two cannot turn a new file to WAL at the same time

    def send(self, count: int, batch: int) -> None:
        self._order("send", count // _PROCESSES, batch)

    def receive(self, count: int, batch: int) -> None:
        self._order("receive", count // _PROCESSES, batch)

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.send(None)
        for process in self._processes:
            process.join()

    def _order(self, what: str, count: int, batch: int) -> None:
        for pipe in self._pipes:
            pipe.send((what, count, batch))
        self._wait()

    def _wait(self) -> None:
        for pipe in self._pipes:
            pipe.recv()


def _serve(pipe: Connection, make: Callable[[], Contender]) -> None:
    contender = make()
    pipe.send("ready")
    while order := pipe.recv():
        what, count, batch = order
        getattr(contender, what)(count, batch)
        pipe.send("done")
    contender.close()
