"""The concurrency modes: number of concurrent handlers, their threads, and executors."""

import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from jmsjca import ActivationSpec, Limits, Queue, ResourceAdapter, TextMessage, Topic, reconnection
from jmsjca.errors import ConfigurationError
from jmsjca.providers import find_provider
from jmsjca.testing.idle import wait_until_idle
from tests.unit.inbound.listeners import PATIENCE, Inbox, Recorder, send, waiting


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


def test_two_serial_listeners_without_prefetching_share_a_queue(jms_broker_url):
    met = threading.Barrier(2, timeout=PATIENCE)
    adapter, done = ResourceAdapter(jms_broker_url, limits=Limits(prefetch_messages=0)), threading.Semaphore(0)

    def first(message):
        met.wait()
        done.release()

    def second(message):
        met.wait()
        done.release()

    adapter.listener("q")(first)
    adapter.listener("q")(second)
    send(adapter, *"abcd")
    with adapter:
        assert all(done.acquire(timeout=PATIENCE) for _ in "abcd")


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
    activation.stop()
    assert seen.empty()  # a second receiver of a topic would have had copies of its own


def test_in_mode_cc_a_message_may_overtake_another(listening):
    overtaken, done = threading.Event(), queue.Queue()

    def handle(message):
        if message.body == "0":
            assert overtaken.wait(PATIENCE)
        done.put(message.body)
        overtaken.set()

    listening(Queue("q"), 2, handle, concurrency_mode="cc", endpoint_pool_max_size=2)
    assert [done.get(timeout=PATIENCE) for _ in range(2)] == ["1", "0"]


class Timed:
    """The embedded provider; it notes how long its consumers are asked to wait."""

    def __init__(self):
        self.timeouts = queue.Queue()

    def connect(self, *args, **kwargs):
        connection = find_provider("embedded").connect(*args, **kwargs)
        make_consumer = connection.consumer

        def consumer(*args, **kwargs):
            consumer = make_consumer(*args, **kwargs)
            receive = consumer.receive

            def timed_receive(limit, timeout):
                self.timeouts.put(timeout)
                return receive(limit, timeout)

            consumer.receive = timed_receive
            return consumer

        connection.consumer = consumer
        return connection


def test_a_receiver_waits_as_long_as_the_option_says(jms_broker_url, monkeypatch):
    provider = Timed()
    monkeypatch.setattr(reconnection, "find_provider", lambda scheme: provider)
    adapter = ResourceAdapter(jms_broker_url, options={"JMSJCA.receivetimeout": "1500"})
    adapter.listener("q", concurrency_mode="sync", endpoint_pool_max_size=1)(Inbox())
    with adapter:
        assert provider.timeouts.get(timeout=PATIENCE) == 1.5


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


@pytest.fixture
def pools():
    made = [ThreadPoolExecutor(1, name) for name in ("adapters", "own")]
    yield made
    for pool in made:
        pool.shutdown()


def threads_of(adapter, send_to="q"):
    names, done = [], threading.Event()

    def handler(message):
        names.append(threading.current_thread().name)
        done.set()

    return handler, names, done


@pytest.mark.parametrize("how", ["listener", "activate", "adapter"])
def test_handlers_run_on_it(jms_broker_url, pools, how):
    general, own = pools
    adapter = ResourceAdapter(jms_broker_url, executor=general)
    handler, names, done = threads_of(adapter)
    if how == "activate":
        adapter.activate(ActivationSpec(destination="q", concurrency_mode="cc"), handler, own)
    else:
        adapter.listener("q", concurrency_mode="cc", executor=own if how == "listener" else None)(handler)
    send(adapter, "a")
    with adapter:
        assert done.wait(PATIENCE)
    assert names == ["adapters_0" if how == "adapter" else "own_0"]
    assert own.submit(int).result(PATIENCE) == 0  # it is still its owner's


def test_other_modes_leave_the_adapters_alone(jms_broker_url, pools):
    adapter = ResourceAdapter(jms_broker_url, executor=pools[0])
    handler, names, done = threads_of(adapter)
    adapter.listener("q")(handler)
    send(adapter, "a")
    with adapter:
        assert done.wait(PATIENCE)
    assert names[0].startswith("jmsjca")


@pytest.mark.parametrize("mode", ["serial", "sync"])
def test_an_executor_is_refused_in_serial_and_sync(jms_adapter, pools, mode):
    with pytest.raises(ConfigurationError, match=f"concurrency_mode='cc', not '{mode}'"):
        jms_adapter.listener("q", concurrency_mode=mode, executor=pools[1])(Inbox())


def test_an_executor_that_takes_no_work_loses_no_message(jms_broker_url, recorder, pools, caplog):
    _, own = pools
    own.shutdown()
    adapter = ResourceAdapter(jms_broker_url, hooks=[recorder])
    adapter.listener("q", concurrency_mode="cc", executor=own)(Inbox())
    send(adapter, "a")
    with adapter:
        recorder.await_status("Connecting", "Up", "Connecting")
    assert "does no work" in caplog.text
    assert waiting(adapter) == [("a", 0)]


@pytest.mark.parametrize(("mode", "most"), [("serial", 1), ("sync", 2), ("cc", 1)])  # each receiver of sync has one
def test_rate_limit_leaves_later_messages_at_the_broker(adapter, mode, most):
    inbox = Inbox()
    adapter.listener("limited", concurrency_mode=mode, concurrency=most, rate_limit=0.001)(inbox)
    adapter.start(wait=PATIENCE)
    adapter.send_many("limited", ["a", "b", "c", "d"])
    inbox.take(1)
    adapter.stop(PATIENCE)
    assert len(waiting(adapter, "limited")) >= 4 - most


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
@pytest.mark.parametrize("durable", [True, False])
def test_listeners_share_a_subscription(adapter, mode, durable):
    inbox = Inbox()
    fields = {"subscription_name": "audit", "subscription_shared": True, "subscription_durable": durable}
    for _ in range(2):
        adapter.listener("topic:news", concurrency_mode=mode, **fields)(inbox)
    adapter.start(wait=PATIENCE)
    sent = [str(number) for number in range(20)]
    adapter.send_many(Topic("news"), sent)
    taken = [body for body, _ in inbox.take(len(sent))]  # waits for them
    wait_until_idle(adapter)
    assert inbox.got.empty()
    assert sorted(taken) == sorted(sent)
