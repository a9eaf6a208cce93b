"""Two tasks that get the same messages from the broker, and stage them at the same time.

The first partition of the second epoch receives all messages, and the broker drops its consumer: its process lives on.
The second one receives some of them. Both have looked for keys in doubt before either of them is staged.
"""

import os
import socket
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from jmsjca.spark.partition import PartitionReader

__all__ = ["MeetingPartition"]

EPOCH = 2
PATIENCE = 60.0


class MeetingPartition(PartitionReader):
    """One of the two."""

    def __init__(self, options, partition, crash) -> None:
        super().__init__(options, partition)
        del crash
        self._place = Path(options.stagingLocation).parent
        self._meets = self._part.epoch == EPOCH
        if self._meets and not self._part.number:
            self._quota = 1000

    def _receive_and_stage(self):
        if self._meets and self._part.number:
            self._await("the first has received")  # before this one has a consumer, which may prefetch
        return super()._receive_and_stage()

    def _receive(self, lease, consumer):
        received = super()._receive(lease, consumer)
        if self._meets and not self._part.number:
            self._lose(consumer)
            self._note("the first has received")
        deadline = time.monotonic() + PATIENCE
        while self._meets and not received and time.monotonic() < deadline:  # until the broker redelivers them
            received = super()._receive(lease, consumer)
        return received

    def _stage(self, consumer, received):
        if self._meets:
            self._meet_at_link()
        return super()._stage(consumer, received)

    def _meet_at_link(self) -> None:
        link = os.link

        def linking(source, target) -> None:
            if str(target).endswith(".arrow"):
                self._note(f"{self._part.number} links")
                self._await(f"{1 - self._part.number} links")
            link(source, target)

        os.link = linking

    def _lose(self, consumer) -> None:
        """Lose the connection, as if the broker had closed it; on the embedded broker, which has none, the consumer."""
        port = urlsplit(self._options.url).port
        if port is None:
            consumer.close()
        for each in psutil.Process().net_connections():
            if each.raddr and each.raddr.port == port:
                with socket.socket(fileno=os.dup(each.fd)) as ours:
                    ours.shutdown(socket.SHUT_RDWR)

    def _note(self, event: str) -> None:
        (self._place / event).touch()

    def _await(self, event: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not (self._place / event).exists():
            assert time.monotonic() < deadline, f"it is not true that {event}"
            threading.Event().wait(0.01)
