"""Threads for handlers that do not keep the program from ending."""

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

__all__ = ["Workers"]

P = ParamSpec("P")
T = TypeVar("T")


class Workers(Executor):
    """A pool of daemon threads, made when they are needed.

    The pool of the standard library waits for its threads when the interpreter ends, also for those of a handler that
    never returns.

    Args:
        most: How many threads there are at most.
        name: The beginning of their names.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._lock = threading.Lock()
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Let a thread call something.

        Raises:
            RuntimeError: The pool is shut down.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError(f"The threads of {self._name} are shut down.")
            self._tasks.put(lambda: _fulfil(future, lambda: fn(*args, **kwargs)))
            if self._idle:
                self._idle -= 1
            elif len(self._threads) < self._most:
                self._start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads end when all is done that was submitted; the one who calls may be one of them."""
        del cancel_futures
        with self._lock:
            self._closed = True
            threads = list(self._threads)
        for _ in threads:
            self._tasks.put(None)
        for thread in threads if wait else ():
            if thread is not threading.current_thread():
                thread.join()

    def _start(self) -> None:
        name = f"{self._name} #{len(self._threads)}"
        thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()
            del task  # and all that it holds on to
            with self._lock:
                self._idle += 1


def _fulfil(future: "Future[Any]", act: Callable[[], object]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(act())
    except BaseException as error:  # noqa: BLE001  # whoever holds the future learns of it
        future.set_exception(error)
