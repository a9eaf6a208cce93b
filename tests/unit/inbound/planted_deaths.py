"""An embedded provider whose consumers, units and browsers die in ways that leave the connection open."""

import threading
from collections.abc import Callable

from jmsjca import spi
from jmsjca.errors import ConnectionLostError
from jmsjca.providers import find_provider

__all__ = ["DyingProvider"]


class DyingProvider:
    """The embedded provider; each planted death takes effect on connections that exist already.

    Attributes:
        ended: Set it to make the next `receive` end its thread.
        deaf: Set it to make consumers receive nothing any more.
        committing: Clear it to make commits wait.
        silent: Set it to make the broker answer no browser.
        on_lost: The callbacks of the connections.
        refusal: An error with which connections are refused; None to accept them.
    """

    def __init__(self) -> None:
        self.ended, self.deaf, self.silent = threading.Event(), threading.Event(), threading.Event()
        self.committing = threading.Event()
        self.committing.set()
        self.consumers: list[spi.Consumer] = []
        self.on_lost: list[Callable[[Exception], None]] = []
        self.refusal: Exception | None = None

    def connect(self, *args, on_lost, **kwargs):
        if self.refusal is not None:
            raise self.refusal
        connection = find_provider("embedded").connect(*args, on_lost=on_lost, **kwargs)
        self.on_lost.append(on_lost)
        make_consumer, make_unit, browse = connection.consumer, connection.unit, connection.browse
        connection.consumer = lambda *args, **kwargs: self._dying_consumer(make_consumer(*args, **kwargs))
        connection.unit = lambda *args, **kwargs: self._dying_unit(make_unit(*args, **kwargs))
        connection.browse = lambda *args, **kwargs: self._dying_browser(browse(*args, **kwargs))
        return connection

    def wake(self) -> None:
        """Make waiting consumers notice a planted death."""
        for consumer in self.consumers:
            consumer.wake()

    def _dying_consumer(self, consumer):
        self.consumers.append(consumer)
        receive = consumer.receive

        def dying_receive(limit, timeout):
            if self.ended.is_set():
                self.ended.clear()
                raise SystemExit
            if self.deaf.is_set():
                woken = threading.Event()
                consumer.wake = woken.set
                woken.wait(timeout)
                return []
            found = receive(limit, timeout)
            if found or not self.ended.is_set():
                return found
            return dying_receive(limit, timeout)

        consumer.receive = dying_receive
        return consumer

    def _dying_unit(self, unit):
        commit = unit.commit

        def dying_commit(**options):
            self.committing.wait()
            commit(**options)

        unit.commit = dying_commit
        return unit

    def _dying_browser(self, chunks):
        if self.silent.is_set():
            raise ConnectionLostError("no answer")
        return chunks
