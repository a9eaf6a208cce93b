"""Sync delivery: several receivers, each with a consumer of its own, each in a loop."""

import threading
from functools import partial

from jmsjca import spi
from jmsjca.inbound.concurrent import ConcurrentDelivery
from jmsjca.inbound.endpoint import Endpoint
from jmsjca.inbound.inside import inside
from jmsjca.inbound.receiver import Receiver
from jmsjca.inbound.supply import Supplies

__all__ = ["SyncDelivery"]

_LOOK_AGAIN = 1.0  # seconds until handlers of a lost connection are looked at again


class SyncDelivery(ConcurrentDelivery):
    """Runs the receivers, each on a thread of its own.

    Args:
        endpoint: Whose messages.
        link: Where they come from.

    Attributes:
        supplies: What the receivers have taken from there.
    """

    def __init__(self, endpoint: Endpoint, link: spi.Connection) -> None:
        super().__init__(endpoint, link)
        self.supplies = Supplies(endpoint, link, self.outstanding)
        self._receivers = [Receiver(self)]  # so that a source that cannot be consumed from is known at once
        self._running = 0

    def _run(self) -> None:
        self._start(self._receivers[0])
        while not self._ended():
            self._start_missing()
            with self._lock:
                self._changed.wait_for(self._ended, _LOOK_AGAIN if self._missing() else None)

    def _missing(self) -> int:
        """Tell how many receivers are to be added; in place of a handler that is still at work there is none."""
        return self.endpoint.terms.pool_size - len(self._receivers)

    def _start_missing(self) -> None:
        for _ in range(self._missing() - self.endpoint.busy_elsewhere):
            receiver = Receiver(self)
            with self._lock:
                self._receivers.append(receiver)
                if self._stopping:
                    receiver.stop()
            self._start(receiver)

    def _start(self, receiver: Receiver) -> None:
        name = f"jmsjca sync #{self._receivers.index(receiver)}({self.endpoint.terms.destination.name})"
        thread = threading.Thread(target=inside(partial(self._receive, receiver)), name=name, daemon=True)
        with self._lock:
            self._running += 1
        thread.start()

    def _ended(self) -> bool:
        return not self._running or self._error is not None

    def _receive(self, receiver: Receiver) -> None:
        try:
            receiver.run()
        except Exception as error:  # noqa: BLE001  # raised by `run`
            self.stop(error)
        finally:
            with self._lock:
                self._running -= 1
                self._changed.notify_all()

    def _wake(self) -> None:
        with self._lock:
            receivers = list(self._receivers)
        self.supplies.turns.close()
        for receiver in receivers:
            receiver.stop()
