"""Tests from asyncio: each on a loop of its own, over a broker in memory and over one in a file."""

import asyncio
import inspect
import threading
import uuid
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from jmsjca.aio.consumer import ReceiveHandoff
from jmsjca.providers.embedded.consumer import EmbeddedConsumer
from jmsjca.providers.embedded.store.store import drop_memory_store
from tests.unit.outbound.queues import PATIENCE


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), PATIENCE))
    return True


@pytest.fixture(params=["memory", "file"])
def jms_broker_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "file":
        yield f"embedded://{tmp_path}/broker.db"
        return
    name = f"test-{uuid.uuid4().hex}"
    yield f"embedded://{name}"
    drop_memory_store(name)


def ours() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(("jmsjca session", "jmsjca asyncio"))]


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """Whatever a test did, its threads have ended or are just ending."""
    yield
    for thread in ours():
        thread.join(PATIENCE)
    assert ours() == []


@pytest.fixture
def receiving(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Starts a coroutine that receives as a task of its own; returns that when its thread asks the broker."""
    entered = threading.Event()
    receive = EmbeddedConsumer.receive

    def entering(consumer: EmbeddedConsumer, limit: int, timeout: float | None) -> Any:
        entered.set()
        return receive(consumer, limit, timeout)

    monkeypatch.setattr(EmbeddedConsumer, "receive", entering)

    async def start(coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        entered.clear()
        task = asyncio.create_task(coroutine)
        assert await asyncio.to_thread(entered.wait, PATIENCE)
        return task

    return start


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a session's thread has shown a message to the event loop, which need not have noticed."""
    event = threading.Event()
    tell = ReceiveHandoff._resolve

    def telling(offer: ReceiveHandoff, outcome: Any) -> None:
        tell(offer, outcome)
        event.set()

    monkeypatch.setattr(ReceiveHandoff, "_resolve", telling)
    return event
