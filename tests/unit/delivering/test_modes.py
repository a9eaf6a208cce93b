"""How many handlers are at work at the same time, and on which threads; of a queue and of a topic."""

import queue
import threading

import pytest

from jmsjca import ActivationSpec, Queue, TextMessage, Topic
from tests.unit.inbound import PATIENCE, Recorder


@pytest.fixture
def listening(adapter, recorder: Recorder):
    """Starts a listener, sends messages when it is up, and gives it."""

    def begin(destination, count, handler, **fields):
        activation = adapter.activate(ActivationSpec(destination=destination, **fields), handler)
        adapter.start()
        recorder.await_status("Connecting", "Up")
        with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
            producer = session.create_producer(destination)
            for number in range(count):
                producer.send(TextMessage(f"{number}"))
        return activation

    return begin


@pytest.mark.parametrize(("mode", "destination"), [("sync", Queue("q")), ("cc", Queue("q")), ("cc", Topic("t"))])
def test_as_many_handlers_as_the_pool_has_are_at_work_at_once(listening, mode, destination):
    met, done = threading.Barrier(3, timeout=PATIENCE), queue.Queue()

    def handle(message):
        met.wait()  # for two others
        done.put(message.body)

    activation = listening(destination, 9, handle, concurrency_mode=mode, endpoint_pool_max_size=3)
    assert sorted(done.get(timeout=PATIENCE) for _ in range(9)) == sorted(map(str, range(9)))
    assert activation.stats.n_highest_active_endpoints == 3


@pytest.mark.parametrize(
    ("mode", "destination"), [("serial", Queue("q")), ("serial", Topic("t")), ("sync", Topic("t"))]
)
def test_one_handler_after_the_other_on_one_thread(listening, mode, destination):
    seen = queue.Queue()

    def handle(message):
        seen.put((message.body, threading.get_ident()))

    activation = listening(destination, 9, handle, concurrency_mode=mode, endpoint_pool_max_size=3)
    bodies, threads = zip(*(seen.get(timeout=PATIENCE) for _ in range(9)), strict=True)
    assert (list(bodies), len(set(threads))) == ([f"{number}" for number in range(9)], 1)
    assert activation.stats.n_highest_active_endpoints == 1


@pytest.mark.parametrize("hold", [False, True])
@pytest.mark.parametrize("mode", ["sync", "cc"])
def test_a_batch_is_handled_on_one_thread(listening, mode, hold):
    batches, seen = {}, queue.Queue()

    def handle(message):
        batches.setdefault(threading.get_ident(), []).append(message.batch_index)
        if message.end_of_batch:
            seen.put(batches.pop(threading.get_ident()))
        message.acknowledge()

    fields = {"concurrency_mode": mode, "endpoint_pool_max_size": 3, "batch_size": 4, "hold_until_ack": hold}
    listening(Queue("q"), 20, handle, **fields)
    handled = 0
    while handled < 20:
        indexes = seen.get(timeout=PATIENCE)
        assert indexes == list(range(len(indexes)))  # the end's is one more than that of the last
        handled += len(indexes) - 1
