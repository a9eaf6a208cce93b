"""Waits in tests until all messages of an adapter's listeners are processed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack
from threading import Event
from typing import TYPE_CHECKING, Self

from jmsjca.adapter import managed_adapters
from jmsjca.config.connection_url import ConnectionURL
from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.errors import JMSError, NotSupportedError

if TYPE_CHECKING:
    from jmsjca.adapter import ResourceAdapter
    from jmsjca.inbound import Activation
    from jmsjca.outbound.factory import ConnectionFactory
    from jmsjca.spi import Admin

__all__ = ["IdleWatch", "wait_until_idle", "wait_until_idle_async"]

_PATIENCE = 30.0
_POLL = 0.005


def wait_until_idle(adapter: ResourceAdapter, timeout: float = _PATIENCE) -> None:
    """Wait until no message waits for a listener of an adapter, and no handler is active.

    The wait includes messages that a handler sends to another listener of the adapter. It excludes messages that are
    not due, unless a listener holds them until then, as in mode serial: advance the clock for those.

    The broker must count the messages that consumers hold (capability counts_held), as the embedded broker does. For a
    non-durable subscription, only the messages in handlers are seen.

    Args:
        adapter: The adapter.
        timeout: Maximum wait, in seconds.

    Raises:
        AssertionError: Messages are left after the timeout; the text names the listeners and their messages. Or a
            listener has stopped permanently; the text says why.
        NotSupportedError: The broker does not count the messages that consumers hold.
    """
    deadline, pause = time.monotonic() + timeout, Event()
    _raise_failures(adapter.activations)  # before the look at a broker, which may be why they failed
    with ExitStack() as stack:
        places = [_Place(activation, stack) for activation in adapter.activations]
        while True:
            _raise_failures(adapter.activations)
            settled = _settled(places)
            # A message may move to a place that was looked at already: then a unit is settled between the two looks.
            left = _left(places) or _left(places)
            if not left and settled == _settled(places):
                return
            if time.monotonic() > deadline:
                raise AssertionError(f"The listeners are not idle after {timeout:g} s: {'; '.join(left) or 'busy'}.")
            pause.wait(_POLL)


async def wait_until_idle_async(adapter: ResourceAdapter, timeout: float = _PATIENCE) -> None:  # noqa: ASYNC109
    """Wait as `wait_until_idle` does, without blocking the event loop."""
    await asyncio.to_thread(wait_until_idle, adapter, timeout)


class IdleWatch:
    """Finds whether a handler can still receive a message in this process.

    Only brokers in memory are known to be idle: other processes cannot send to them.

    Args:
        handler: The handler of a listener.
    """

    def __init__(self, handler: object) -> None:
        self._handler = handler
        self._stack = ExitStack()
        self._admins: dict[str, Admin | None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def is_idle(self) -> bool:
        """Return True if all listeners of the handler are up, and no message of their brokers is on its way.

        Messages that are not due yet are on their way, and so are those that a consumer has or can receive.
        """
        activations = [each for adapter in managed_adapters() for each in adapter.activations]
        if not any(each.handler == self._handler for each in activations):
            return False
        running = [each for each in activations if each.handler == self._handler or each.status != "Down"]
        if any(each.status != "Up" or each.units_in_flight for each in running):
            return False
        try:
            return all(self._is_broker_idle(each.connection_factory()) for each in running)
        except JMSError:
            return False

    def _is_broker_idle(self, factory: ConnectionFactory) -> bool:
        url = ConnectionURL.parse(factory.login.url)
        if url.protocol != "embedded" or url.path.strip("/"):
            return False
        key = str(url)
        if key not in self._admins:
            self._admins[key] = self._stack.enter_context(factory.create_connection()).admin
        admin = self._admins[key]
        return admin is not None and all(_is_resting(admin, each) for each in admin.destinations())


def _is_resting(admin: Admin, queue: Destination) -> bool:
    depth = admin.depth(queue)
    return not (depth.held or depth.scheduled or (depth.ready and admin.activity(queue).consumers))


class _Place:
    """A listener and the messages that wait for it.

    Args:
        activation: The listener.
        stack: Closes the connection used for counting.
    """

    def __init__(self, activation: Activation, stack: ExitStack) -> None:
        self._activation = activation
        self._source = activation.spec.source()
        self._admin: Admin | None = None
        if isinstance(self._source, Queue) or (isinstance(self._source, Subscription) and self._source.durable):
            connection = stack.enter_context(activation.connection_factory().create_connection())
            if not connection.capabilities.counts_held:
                raise NotSupportedError(
                    f"{activation.name}: this broker does not count the messages that consumers hold (capability "
                    "counts_held); wait for the calls of the handler instead."
                )
            self._admin = connection.admin

    @property
    def settled(self) -> int:
        """The number of messages that were settled."""
        stats = self._activation.stats
        return sum(stats.settled_messages.values()) + stats.n_bypass_commits

    def left(self) -> str | None:
        """Describe the messages that are left; None if there are no messages."""
        depth = None if self._admin is None else self._admin.depth(self._source)
        ready, held = (0, 0) if depth is None else (depth.ready, depth.held)
        units = self._activation.units_in_flight
        if ready or held or units:
            return f"{self._activation.name}: {ready} messages wait, {held} are held, {units} units are in flight"
        return None


def _raise_failures(activations: Sequence[Activation]) -> None:
    failed = [
        f"{each.name} has stopped permanently: {each.failure}" for each in activations if each.failure is not None
    ]
    if failed:
        raise AssertionError("; ".join(failed))


def _left(places: Sequence[_Place]) -> list[str]:
    return [left for place in places if (left := place.left()) is not None]


def _settled(places: Sequence[_Place]) -> int:
    return sum(place.settled for place in places)
