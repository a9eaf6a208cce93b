"""The sends of a running handler: they join the unit of its delivery."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock, RLock
from typing import Any, NamedTuple

from jmsjca.destinations import Destination
from jmsjca.errors import IllegalStateError
from jmsjca.forking import Process
from jmsjca.messages.message import Message
from jmsjca.outbound.session import Session

__all__ = ["DeliverySends", "SendScope", "current_delivery", "outside_delivery"]


class SendScope(NamedTuple):
    """The senders and listeners of one adapter at one broker: what such a handler sends joins the unit of its delivery.

    Attributes:
        adapter: An object that stands for the adapter.
        broker: The broker, see `ConnectionURL.broker`.
    """

    adapter: object
    broker: object


class DeliverySends:
    """The sends of a handler through its adapter: they join the unit of the delivery until the handler returns.

    The value of `current_delivery` during a call of the handler. Coroutines, and threads that run in a copy of the
    caller's context, belong to the call. Thread-safe.

    Args:
        scope: The scope of the listener; None if no send joins.
        open_session: Returns a session that sends in the unit.
        set_rollback_only: Marks the unit for rollback.
    """

    __slots__ = ("_forks", "_lock", "_open_session", "_set_rollback_only", "scope")

    def __init__(
        self, scope: SendScope | None, open_session: Callable[[], Session], set_rollback_only: Callable[[], None]
    ) -> None:
        self.scope = scope
        self._open_session: Callable[[], Session] | None = open_session
        self._set_rollback_only = set_rollback_only
        self._lock: RLock | None = None  # created by the first send: most handlers send nothing in this way
        self._forks = Process.forks

    def end(self) -> None:
        """Stop sends from joining the unit: the handler has returned."""
        self._open_session = None
        if self._lock is not None:  # a send of another thread belongs to the unit as a whole, or not at all
            with self._lock:
                pass

    @property
    def is_open(self) -> bool:
        """True until the handler has returned; False in a forked child, because it is not part of the delivery."""
        return self._open_session is not None and self._forks == Process.forks

    def send(self, to: Destination, messages: Sequence[Message], given: Mapping[str, Any]) -> None:
        """Add messages to the unit: all of them, or the unit is rolled back.

        Args:
            to: The destination.
            messages: The messages.
            given: The options of the producer.

        Raises:
            IllegalStateError: The handler has returned.
            JMSError: A message cannot be sent.
        """
        with _creating_lock:
            self._lock = lock = self._lock or RLock()  # reentrant: a hook around a send may send
        with lock:
            open_session = self._open_session
            if open_session is None:
                raise IllegalStateError(
                    f"The handler returned before its send to {to} began, so the message was not sent: await each send."
                )
            producer = open_session().create_producer(to)
            for position, message in enumerate(messages):
                try:
                    producer.send(message, **given)
                except Exception:
                    if position:
                        self._set_rollback_only()
                    raise


_creating_lock = Lock()
current_delivery: ContextVar[DeliverySends | None] = ContextVar("jmsjca_delivery", default=None)
"""The sends of the handler that is running, if they join its unit."""


@contextmanager
def outside_delivery(adapter: object) -> Generator[None]:
    """Send at once during the block, although a handler of the adapter is running.

    Args:
        adapter: The object that stands for the adapter in a `SendScope`.
    """
    delivery = current_delivery.get()
    is_own = delivery is not None and delivery.scope is not None and delivery.scope.adapter is adapter
    token = current_delivery.set(None if is_own else delivery)
    try:
        yield
    finally:
        current_delivery.reset(token)
