"""Prometheus metrics: figures of listeners and senders, in a registry of the application's."""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from jmsjca import Hooks, Message, Queue, Reject, ResourceAdapter, Session, TextMessage
from jmsjca.management.metrics import Metrics
from tests.unit.inbound.deliveries import until
from tests.unit.inbound.listeners import PATIENCE, Inbox, Recorder, send


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def metrics(registry):
    return Metrics(registry)


@pytest.fixture
def measured(jms_broker_url, metrics, recorder: Recorder):
    adapter = ResourceAdapter(jms_broker_url, hooks=[metrics, recorder])
    metrics.watch(adapter)
    yield adapter
    adapter.stop()


@pytest.fixture
def value(registry, measured):
    """The value of a sample of the only listener."""

    def _value(name, **labels):
        [activation] = measured.activations
        return registry.get_sample_value(name, {"listener": activation.name, **labels})

    return _value


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
def test_the_figures_of_a_listener(measured, value, recorder, mode):
    measured.listener("q", concurrency_mode=mode)(Inbox(ValueError()))
    measured.start(wait=PATIENCE)
    send(measured, "a")
    until(lambda: recorder.outcomes.qsize() == 2)  # rolled back, then committed
    assert (value("jmsjca_messages_received_total"), value("jmsjca_messages_redelivered_total")) == (2, 1)
    assert value("jmsjca_handler_failures_total") == 1
    assert value("jmsjca_messages_settled_total", outcome="committed") == 1
    assert value("jmsjca_messages_settled_total", outcome="rolled_back") == 1
    assert value("jmsjca_messages_settled_total", outcome="in_doubt") == 0
    assert (value("jmsjca_handler_seconds_count"), value("jmsjca_message_lag_seconds_count")) == (2, 1)
    assert 0 < value("jmsjca_handler_seconds_sum") < PATIENCE
    assert value("jmsjca_listener_connections_total") == 1


def test_activations_with_equal_names_are_one_listener(measured, metrics, registry, recorder):
    """Prometheus refuses an exposition with two samples of the same name and labels."""
    metrics.watch(measured)  # once more
    for _ in range(2):
        measured.listener("q", concurrency_mode="cc", endpoint_pool_max_size=3)(Inbox())
    measured.start(wait=PATIENCE)
    [name] = {activation.name for activation in measured.activations}
    send(measured, "a", "b", "c")
    until(lambda: recorder.outcomes.qsize() == 3)
    samples = [
        sample
        for family in text_string_to_metric_families(generate_openmetrics(registry).decode())
        for sample in family.samples
    ]
    values = {(sample.name, *sample.labels.values()): sample.value for sample in samples}
    assert len(values) == len(samples)
    assert values["jmsjca_messages_received_total", name] == 3
    assert values["jmsjca_messages_settled_total", name, "committed"] == 3
    assert (values["jmsjca_listener_up", name], values["jmsjca_handlers_limit", name]) == (1, 6)
    measured.activations[0].stop()
    assert registry.get_sample_value("jmsjca_listener_up", {"listener": name}) == 0


def test_moved_and_deleted_messages(measured, value, recorder):
    def refuse(message):
        raise Reject("no")

    measured.listener("q", redelivery_handling="9:move(queue:dlq.$)")(refuse)
    measured.start(wait=PATIENCE)
    send(measured, "a", "b")
    until(lambda: value("jmsjca_messages_dead_lettered_total", action="moved") == 2)
    assert value("jmsjca_messages_received_total") == 2
    assert value("jmsjca_messages_dead_lettered_total", action="deleted") == 0


def test_the_gauges_of_an_adapter(measured, metrics, value, registry):
    released, entered = threading.Event(), threading.Event()

    @measured.listener("q", concurrency_mode="cc", endpoint_pool_max_size=4)
    def hold(message: Message) -> None:
        entered.set()
        released.wait(PATIENCE)

    assert value("jmsjca_listener_up") == 0
    measured.start(wait=PATIENCE)
    measured.send("q", "a")
    assert entered.wait(PATIENCE)
    assert (value("jmsjca_listener_up"), value("jmsjca_handlers_active"), value("jmsjca_handlers_limit")) == (1, 1, 4)
    assert value("jmsjca_units_in_flight") == 1
    assert registry.get_sample_value("jmsjca_pool", {"figure": "pool_size"}) == 1
    released.set()
    until(lambda: value("jmsjca_units_in_flight") == 0)


def test_sends_are_measured_and_their_labels_bounded(registry, jms_broker_url):
    bounded = Metrics(registry, max_destinations=3)
    with (
        ResourceAdapter(jms_broker_url, hooks=[bounded]).connection_factory().create_connection() as connection,
        connection.create_session() as session,
    ):
        for name in ("a", "b", "c", "d", "e", "a"):
            session.create_producer(Queue(name)).send(TextMessage("x"))
        session.create_producer(session.create_temporary_queue()).send(TextMessage("x"))

    def count(destination):
        return registry.get_sample_value("jmsjca_send_seconds_count", {"destination": destination})

    assert [count(f"queue:{name}") for name in "abcd"] == [2, 1, 1, None]
    assert count("other") == 3


def test_a_failed_send_is_counted(registry, jms_broker_url, metrics):
    class Refuses(Hooks):
        def around_send(self, message, destination, call_next):
            raise ValueError

    adapter = ResourceAdapter(jms_broker_url, hooks=[metrics, Refuses()])
    with pytest.raises(Exception, match="ValueError"):
        send(adapter, "a")
    assert registry.get_sample_value("jmsjca_send_failures_total", {"destination": "queue:q"}) == 1


def test_a_reply_is_a_send_and_a_reconnect_a_connection(measured, registry, value, recorder):
    @measured.listener("q")
    def answer(message: Message, session: Session) -> None:
        session.create_producer(Queue("answers")).send(TextMessage("b"))

    measured.start(wait=PATIENCE)
    send(measured, "a")
    until(lambda: recorder.outcomes.qsize() == 1)
    assert registry.get_sample_value("jmsjca_send_seconds_count", {"destination": "queue:answers"}) == 1
    measured.activations[0].restart()
    until(lambda: value("jmsjca_listener_connections_total") == 2)


def test_prepared_units_of_adapters_with_a_last_resource(metrics, registry):
    metrics.watch(
        ResourceAdapter("embedded://shop", last_resource=SimpleNamespace(prepared=3, identity=bytes, watch=print))
    )
    assert registry.get_sample_value("jmsjca_prepared_units") == 3


def test_the_page_lists_all_metrics(measured, metrics, registry, pytestconfig):
    measured.listener("q")(Inbox())
    names = {family.name for family in registry.collect()}
    page = (pytestconfig.rootpath / "docs" / "how-to" / "metrics.md").read_text()
    assert names
    assert {name for name in names if f"`{name}" not in page} == set()
    assert b"# HELP jmsjca_handler_seconds" in generate_latest(registry)


def test_a_pickled_factory_leaves_them_behind(metrics):
    assert type(pickle.loads(pickle.dumps(metrics))) is Hooks  # noqa: S301  # our own


def test_each_call_is_counted_once_whatever_threads_and_scrapes_do(registry, metrics):
    def call(_):
        for number in range(1000):
            metrics.handled("q", TextMessage("a"), 0.001, failed=number % 10 == 0)
            if number % 100 == 0:
                generate_latest(registry)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(call, range(4)))
    assert registry.get_sample_value("jmsjca_handler_seconds_count", {"listener": "q"}) == 4000
    assert registry.get_sample_value("jmsjca_handler_failures_total", {"listener": "q"}) == 400
    assert registry.get_sample_value("jmsjca_handler_seconds_sum", {"listener": "q"}) > 0


def test_durations_that_wait_to_be_counted_are_few(metrics):
    for _ in range(1000):
        metrics.handled("q", TextMessage("a"), 0.001, failed=False)
    assert len(metrics._listener("q").pending) < 256
