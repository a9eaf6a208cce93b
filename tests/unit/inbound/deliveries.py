"""Deliveries without an activation: over a connection and endpoint settings of the test."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor

from jmsjca import Hooks, Queue, spi
from jmsjca.config import SYSTEM_CLOCK, Clock, Limits
from jmsjca.hooks import HookChain
from jmsjca.inbound.endpoint import Endpoint, EndpointSettings
from jmsjca.inbound.handler import Handler
from jmsjca.inbound.lifecycle import create_dispatcher
from jmsjca.inbound.statistics import StatisticsRecorder
from jmsjca.messages import TextMessage
from tests.unit.inbound.listeners import PATIENCE

__all__ = ["Breaks", "Performance", "depth", "endpoint_of", "put", "terms", "until"]


def terms(mode: str = "cc", **changes: object) -> EndpointSettings:
    """Those of a listener to the queue q."""
    defaults = {"mode": mode, "pool_size": 1 if mode == "serial" else 3, "receive_timeout": 0.05}
    return EndpointSettings(Queue("q"), Queue("q"), **{**defaults, **changes})


def endpoint_of(
    handler: Callable[..., object], terms: EndpointSettings, *hooks: Hooks, clock: Clock | None = None
) -> Endpoint:
    return Endpoint(
        "test",
        terms,
        Handler(handler),
        statistics=StatisticsRecorder(),
        hooks=HookChain(hooks),
        limits=Limits(),
        clock=clock or SYSTEM_CLOCK,
        request_stop=lambda reason: None,
    )


class Performance:
    """One dispatcher on a thread of its own.

    Attributes:
        error: What its `run` raised.
    """

    def __init__(self, endpoint: Endpoint, link: spi.Connection, executor: Executor | None = None) -> None:
        self.dispatcher = create_dispatcher(endpoint, link, executor)
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.dispatcher.run()
        except BaseException as error:  # noqa: BLE001  # for the test to see
            self.error = error

    @property
    def ended(self) -> bool:
        """True if it runs no more."""
        return not self._thread.is_alive()

    def ends(self) -> BaseException | None:
        """Wait for its end; give its error."""
        self._thread.join(PATIENCE)
        ended = self.ended
        self.dispatcher.stop()  # one that runs on would slow down all later tests
        assert ended, "the dispatcher did not end"
        return self.error

    def stop(self) -> None:
        """Stop it, and wait until it has ended well."""
        self.dispatcher.stop()
        error = self.ends()
        if error is not None:
            raise error


class Breaks:
    """A consumer, a unit or a connection of which some calls raise, when the test says so."""

    def __init__(self, real: object, **errors: BaseException) -> None:
        self._real = real
        self.errors = errors

    def __getattr__(self, name: str) -> object:
        if name in self.errors:
            raise_it = self.errors[name]

            def fail(*args: object, **kwargs: object) -> object:
                raise raise_it

            return fail
        return getattr(self._real, name)


def until(condition: Callable[[], object]) -> None:
    """Wait for something that nobody tells."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)


def put(link: spi.Connection, *bodies: str) -> None:
    """Send to the queue q."""
    unit = link.unit()
    for body in bodies:
        message = TextMessage(body)
        message.message_id = f"ID:{body}"
        unit.send(message, Queue("q"))
    unit.commit()


def depth(link: spi.Connection) -> spi.Depth:
    """What is in the queue q."""
    admin = link.admin()
    assert admin is not None
    return admin.depth(Queue("q"))
