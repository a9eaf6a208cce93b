"""A handler that waits for the outcome of its own unit is refused."""

import asyncio
import queue

import pytest

from jmsjca import Message, Outcome, Queue
from jmsjca.errors import IllegalStateError
from tests.unit.inbound.listeners import PATIENCE, in_thread, send

HOLD = {"concurrency_mode": "cc", "hold_until_ack": True}
SPECS = pytest.mark.parametrize("spec", [{}, {"concurrency_mode": "sync"}, HOLD], ids=["serial", "sync", "held"])


@pytest.fixture
def got():
    return queue.Queue()


def refused(got, wait):
    with pytest.raises(IllegalStateError, match="own unit"):
        wait()
    got.put("refused")


@SPECS
def test_a_function_is_refused(adapter, recorder, got, spec):
    @adapter.listener("q", **spec)
    def handler(message: Message) -> None:
        settlement = message.acknowledge()
        assert settlement.wait(0) is None
        refused(got, settlement.wait)
        refused(got, lambda: settlement.wait(PATIENCE))

    send(adapter, "a")
    with adapter:
        recorder.await_outcome(Outcome.COMMITTED)
        assert list(got.queue) == ["refused"] * 2


@SPECS
def test_a_coroutine_is_refused(adapter, recorder, got, spec):
    @adapter.listener("q", **spec)
    async def handler(message: Message) -> None:
        settlement = message.acknowledge()
        with pytest.raises(IllegalStateError, match="own unit"):
            await settlement
        refused(got, settlement.wait)

    send(adapter, "a")
    with adapter:
        recorder.await_outcome(Outcome.COMMITTED)
        assert list(got.queue) == ["refused"]


@SPECS
def test_a_task_that_outlives_the_handler_may_wait(adapter, got, spec):
    tasks = set()

    async def await_outcome(message: Message) -> None:
        got.put(await message.acknowledge())

    @adapter.listener("q", **spec)
    async def handler(message: Message) -> None:
        tasks.add(asyncio.create_task(await_outcome(message)))
        await asyncio.sleep(0)  # it waits already

    send(adapter, "a")
    with adapter:
        assert got.get(timeout=PATIENCE) is Outcome.COMMITTED


def test_a_handler_may_wait_for_the_unit_of_another(adapter, got):
    """The thread is the same, but the handler of the unit has returned."""
    earlier = []

    @adapter.listener("q", concurrency_mode="sync", endpoint_pool_max_size=1, batch_size=2, hold_until_ack=True)
    def handler(messages):
        if earlier:
            settlement, last = earlier
            got.put(settlement.wait(0.001))
            last.acknowledge()
            got.put(settlement.wait(PATIENCE))
        else:
            earlier.extend([messages[0].acknowledge(), messages[1]])

    send(adapter, *"abcd")
    with adapter:
        assert [got.get(timeout=PATIENCE), got.get(timeout=PATIENCE)] == [None, Outcome.COMMITTED]


def test_another_thread_may_wait_and_send_with_the_session(adapter, recorder, got):
    """The handler of a held message has returned; its session still sends in the unit."""

    @adapter.listener("q", **HOLD)
    def handler(message: Message, session) -> None:
        got.put((message, session))

    def finish() -> None:
        message, session = got.get(timeout=PATIENCE)
        session.create_producer(Queue("out")).send(session.create_text_message("sent"))
        got.put(message.acknowledge().wait(PATIENCE))

    send(adapter, "a")
    with adapter:
        in_thread(finish).join(PATIENCE)
        assert got.get_nowait() is Outcome.COMMITTED
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        assert session.create_consumer(Queue("out")).receive(timeout=PATIENCE).body == "sent"
