"""Proton's own `MessagingHandler` and what times it: the loop that its documentation shows."""

import time
from typing import Any, NamedTuple

from proton import Message, byte, symbol
from proton.handlers import MessagingHandler
from proton.reactor import Container, LinkOption

BODY = b"x" * 1024
BATCH = 100
PATIENCE = 120
BASE = "proton handler"


class Figures(NamedTuple):
    """One measurement."""

    rate: float  # messages per second
    cpu: float  # microseconds of this process per message


class Stopwatch:
    """Wall and CPU time from its making."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self, count: int) -> Figures:
        return Figures(
            count / (time.perf_counter() - self._wall), (time.process_time() - self._cpu) / count * 1_000_000
        )


class InQueue(LinkOption):
    def apply(self, link: Any) -> None:
        (link.target if link.is_sender else link.source).capabilities.put_object(symbol("queue"))


class Handler(MessagingHandler):
    """Proton as its documentation shows it.

    Args:
        url: The broker.
        queue: The queue's name.
        count: How many messages.
        ahead: How many are taken ahead.
        auto_accept: False to accept messages in some other way than each after its handling.
    """

    def __init__(self, url: str, queue: str, count: int, ahead: int = BATCH, *, auto_accept: bool = True) -> None:
        super().__init__(prefetch=ahead, auto_accept=auto_accept)
        self._url, self._queue, self._count = url, queue, count
        self._done = self._sent = 0
        self._link: Any = None
        self._watch: Any = None
        self.figures: Any = None

    def run(self) -> Figures:
        Container(self).run()
        return self.figures  # type: ignore[no-any-return]

    def on_start(self, event: Any) -> None:
        event.container.connect(self._url, allowed_mechs="ANONYMOUS", reconnect=False)

    def count(self, event: Any) -> None:
        self._done += 1
        if self._done == self._count:
            self.figures = self._watch.read(self._count)
            event.connection.close()


class HandlerSends(Handler):
    def on_connection_opened(self, event: Any) -> None:
        self._watch = Stopwatch()
        self._link = event.container.create_sender(event.connection, self._queue, options=InQueue())

    def on_sendable(self, event: Any) -> None:
        while event.sender.credit and self._sent < self._count:
            event.sender.send(self.message())
            self._sent += 1

    def on_accepted(self, event: Any) -> None:
        self.count(event)

    def message(self) -> Message:
        annotations = {symbol("x-opt-jms-dest"): byte(0), symbol("x-opt-jms-msg-type"): byte(3)}
        return Message(
            body=BODY,
            inferred=True,
            durable=True,
            id=f"ID:{self._sent}-{self._queue}",
            address=self._queue,
            creation_time=time.time(),
            content_type=symbol("application/octet-stream"),
            annotations=annotations,
        )


class HandlerReceives(Handler):
    def on_connection_opened(self, event: Any) -> None:
        self._watch = Stopwatch()
        self._link = event.container.create_receiver(event.connection, self._queue, options=InQueue())

    def on_message(self, event: Any) -> None:
        assert len(event.message.body) == len(BODY)
        self.count(event)
