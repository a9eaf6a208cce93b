"""Spans and durations of OpenTelemetry, as an exporter of the SDK gets them."""

import pickle

import pytest
from opentelemetry import propagate
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from poisoning import poison_embedded

from jmsjca import Hooks, Message, Queue, ResourceAdapter, Session, TextMessage
from jmsjca.errors import MessageFormatError
from jmsjca.management.tracing import Tracing
from tests.unit.inbound.deliveries import until
from tests.unit.inbound.listeners import PATIENCE, Inbox, Recorder, send


class Traced:
    """An adapter with tracing, and what it exported."""

    def __init__(self, url, **options):
        self.exporter, self.reader, self.recorder = InMemorySpanExporter(), InMemoryMetricReader(), Recorder()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracing = Tracing(tracers, MeterProvider([self.reader]), **options)
        self.adapter = ResourceAdapter(url, hooks=[self.tracing, self.recorder])

    def wait_for(self, units):
        """Wait for settled units; return the spans by name."""
        until(lambda: self.recorder.outcomes.qsize() >= units)
        return {span.name: span for span in self.exporter.get_finished_spans()}

    def measurements(self):
        [resource] = self.reader.get_metrics_data().resource_metrics
        return {metric.name: metric.data.data_points for scope in resource.scope_metrics for metric in scope.metrics}


@pytest.fixture
def traced(jms_broker_url):
    made = []

    def make(**options):
        made.append(Traced(jms_broker_url, **options))
        return made[-1]

    yield make
    for each in made:
        each.adapter.stop()


def start(traced, handler, mode="serial", **fields):
    traced.adapter.listener("orders", concurrency_mode=mode, **fields)(handler)
    traced.adapter.start(wait=PATIENCE)


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
def test_send_process_and_settle_are_spans_with_links(traced, mode):
    traced = traced(system="activemq")
    start(traced, Inbox(), mode)
    send(traced.adapter, "a", to="orders")
    spans = traced.wait_for(1)
    sent, processed, settled = spans["send orders"], spans["process orders"], spans["settle orders"]
    assert (sent.kind, processed.kind, settled.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER, SpanKind.CLIENT)
    for span in (processed, settled):
        assert [link.context.span_id for link in span.links] == [sent.context.span_id]
    assert processed.parent is None
    assert processed.context.trace_id != sent.context.trace_id
    assert sent.attributes["messaging.message.id"] == processed.attributes["messaging.message.id"]
    assert dict(sent.attributes) | {"messaging.message.id": ""} == {
        "messaging.system": "activemq",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "orders",
        "messaging.message.id": "",
    }
    assert processed.attributes["jmsjca.listener"] == traced.adapter.activations[0].name


class DashedPropagator(TraceContextTextMapPropagator):
    """Writes the context under names that are no Java identifiers, as those of Zipkin (B3) and Jaeger do."""

    @property
    def fields(self):
        return {f"x-{each}" for each in super().fields}

    def inject(self, carrier, context=None, setter=None):
        plain = {}
        super().inject(plain, context)
        carrier.update({f"x-{name}": value for name, value in plain.items()})

    def extract(self, carrier, context=None, getter=None):
        return super().extract({name.removeprefix("x-"): value for name, value in carrier.items()}, context)


@pytest.fixture
def dashed_fields():
    usual = propagate.get_global_textmap()
    propagate.set_global_textmap(DashedPropagator())
    yield
    propagate.set_global_textmap(usual)


@pytest.mark.usefixtures("dashed_fields")
def test_names_with_dashes_are_written_as_java_programs_write_them(traced):
    traced = traced()
    send(traced.adapter, "a", to="before")
    [sent] = traced.exporter.get_finished_spans()
    properties = receive(traced, "before").properties
    assert f"{sent.context.span_id:016x}" in properties["x__dash__traceparent"]
    start(traced, Inbox())
    send(traced.adapter, "a", to="orders")
    spans = traced.wait_for(1)
    links = spans["process orders"].links
    assert [link.context.span_id for link in links] == [spans["send orders"].context.span_id]


def test_the_delivery_may_be_a_child_of_the_send(traced):
    traced = traced(parent=True)
    start(traced, Inbox())
    send(traced.adapter, "a", to="orders")
    spans = traced.wait_for(1)
    assert spans["process orders"].parent.span_id == spans["send orders"].context.span_id


@pytest.mark.parametrize("mode", ["serial", "cc"])
def test_what_a_handler_sends_belongs_to_its_span(traced, mode):
    traced = traced()

    async def invoice(message: Message, session: Session) -> None:
        session.create_producer(Queue("invoices")).send(TextMessage("b"))

    start(traced, invoice, mode)
    send(traced.adapter, "a", to="orders")
    spans = traced.wait_for(1)
    created, sent = spans["create invoices"], spans["send invoices"]
    assert created.parent.span_id == spans["process orders"].context.span_id
    assert sent.parent.span_id == spans["settle orders"].context.span_id
    assert [link.context.span_id for link in sent.links] == [created.context.span_id]


def receive(traced, queue="orders"):
    with traced.adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        return session.create_consumer(Queue(queue)).receive(60)


def test_messages_of_a_transaction_have_spans_of_their_own_and_one_of_their_commit(traced):
    traced = traced()
    bodies = traced.adapter.send_many("orders", ["a", "b"])
    first, second, sent = traced.exporter.get_finished_spans()
    assert [first.name, second.name, sent.name] == ["create orders", "create orders", "send orders"]
    assert [first.kind, second.kind, sent.kind] == [SpanKind.PRODUCER, SpanKind.PRODUCER, SpanKind.CLIENT]
    assert first.attributes["messaging.operation.type"] == "create"
    assert first.attributes["messaging.message.id"] == bodies[0].message_id
    assert [link.context.span_id for link in sent.links] == [first.context.span_id, second.context.span_id]
    assert dict(sent.attributes) == {
        "messaging.system": "jms",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "orders",
        "messaging.batch.message_count": 2,
    }
    assert f"{first.context.span_id:016x}" in receive(traced).properties["traceparent"]
    points = traced.measurements()
    assert [point.value for point in points["messaging.client.sent.messages"]] == [2]
    durations = points["messaging.client.operation.duration"]
    counts = {point.attributes["messaging.operation.name"]: point.count for point in durations}
    assert counts == {"create": 2, "send": 1, "receive": 1}


def test_a_commit_to_several_destinations_names_none_of_them(traced):
    traced = traced()
    factory = traced.adapter.connection_factory()
    with factory.create_connection() as connection, connection.create_session(transacted=True) as session:
        for queue in ("orders", "invoices"):
            session.create_producer(Queue(queue)).send(TextMessage("a"))
        session.commit()
    assert traced.exporter.get_finished_spans()[2].name == "send"
    sent = traced.measurements()["messaging.client.sent.messages"]
    assert {point.attributes["messaging.destination.name"]: point.value for point in sent} == {
        "orders": 1,
        "invoices": 1,
    }


def test_what_is_rolled_back_is_created_and_not_sent(traced):
    traced = traced()
    factory = traced.adapter.connection_factory()
    with factory.create_connection() as connection, connection.create_session(transacted=True) as session:
        session.create_producer(Queue("orders")).send(TextMessage("a"))
        session.rollback()
    assert [span.name for span in traced.exporter.get_finished_spans()] == ["create orders"]
    assert "messaging.client.sent.messages" not in traced.measurements()


def test_a_received_message_has_a_span_that_links_to_its_send(traced):
    traced = traced()
    send(traced.adapter, "a", to="orders")
    message = receive(traced)
    sent, received = traced.exporter.get_finished_spans()
    assert (received.name, received.kind) == ("receive orders", SpanKind.CLIENT)
    assert [link.context.span_id for link in received.links] == [sent.context.span_id]
    assert received.attributes["messaging.message.id"] == message.message_id
    assert received.attributes["messaging.operation.type"] == "receive"
    assert received.start_time <= received.end_time
    points = traced.measurements()
    [received] = [
        point
        for point in points["messaging.client.operation.duration"]
        if point.attributes["messaging.operation.name"] == "receive"
    ]
    assert received.count == 1
    assert [point.value for point in points["messaging.client.consumed.messages"]] == [1]


def test_a_receive_belongs_to_the_span_of_its_caller_and_an_empty_one_has_none(traced):
    traced = traced()
    send(traced.adapter, "a", to="orders")
    tracer = traced.tracing._tracer
    factory = traced.adapter.connection_factory()
    with factory.create_connection() as connection, connection.create_session() as session:
        consumer = session.create_consumer(Queue("orders"))
        with tracer.start_as_current_span("job") as job:
            assert consumer.receive(60).body == "a"
            assert consumer.receive(0) is None
    [received] = [span for span in traced.exporter.get_finished_spans() if span.name == "receive orders"]
    assert received.parent.span_id == job.get_span_context().span_id


def test_a_receive_that_fails_is_an_error(traced):
    traced = traced()
    poison_embedded(traced.adapter.connection_factory()._login.url, Queue("orders"))
    with pytest.raises(MessageFormatError):
        receive(traced)
    [received] = traced.exporter.get_finished_spans()
    assert (received.status.status_code, received.attributes["error.type"]) == (StatusCode.ERROR, "MessageFormatError")
    assert received.events[0].name == "exception"
    [duration] = traced.measurements()["messaging.client.operation.duration"]
    assert duration.attributes["error.type"] == "MessageFormatError"


def test_a_failure_is_an_event_and_a_status(traced):
    traced = traced()
    start(traced, Inbox(ValueError("no price")))
    send(traced.adapter, "a", to="orders")
    traced.wait_for(2)
    failed, mended = (span for span in traced.exporter.get_finished_spans() if span.name == "process orders")
    assert (failed.status.status_code, mended.status.status_code) == (StatusCode.ERROR, StatusCode.UNSET)
    assert failed.attributes["error.type"] == "ValueError"
    assert [event.attributes["exception.message"] for event in failed.events] == ["no price"]


def test_a_context_of_another_program_is_read(traced):
    traced = traced()
    start(traced, Inbox())
    message = TextMessage("a")
    message.properties["traceparent"] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with ResourceAdapter(traced.adapter.connection_factory()._login.url) as plain:
        plain.send("orders", message)
    [link] = traced.wait_for(1)["process orders"].links
    assert f"{link.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert f"{link.context.span_id:016x}" == "b7ad6b7169203331"


def test_a_batch_is_settled_in_one_span(traced):
    traced = traced()
    send(traced.adapter, "a", "b", "c", to="orders")
    start(traced, Inbox(), "sync", batch_size=3, endpoint_pool_max_size=1)
    settled = traced.wait_for(1)["settle orders"]
    assert settled.attributes["messaging.batch.message_count"] == len(settled.links) == 3


def test_a_temporary_destination_is_no_label(traced):
    traced = traced()
    with traced.adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        session.create_producer(session.create_temporary_queue()).send(TextMessage("a"))
    [span] = traced.exporter.get_finished_spans()
    assert span.name == "send"
    assert span.attributes["messaging.destination.temporary"] is True


def test_measurements_name_a_bounded_number_of_destinations(traced):
    """Names of reply queues can be without number; spans have them all the same."""
    traced = traced(max_destinations=2)
    for name in ("a", "b", "reply-1", "reply-2", "a"):
        send(traced.adapter, "text", to=name)
    measured = traced.measurements()
    counted = {
        point.attributes.get("messaging.destination.name"): point.value
        for point in measured["messaging.client.sent.messages"]
    }
    assert counted == {"a": 2, "b": 1, None: 2}
    timed = measured["messaging.client.operation.duration"]
    assert {point.attributes.get("messaging.destination.name") for point in timed} == {"a", "b", None}
    spans = traced.exporter.get_finished_spans()
    assert [span.attributes["messaging.destination.name"] for span in spans] == ["a", "b", "reply-1", "reply-2", "a"]


def test_a_received_message_is_sent_on_with_its_context(traced):
    traced = traced()

    def forward(message: Message, session: Session) -> None:
        session.create_producer(Queue("archive")).send(message)

    start(traced, forward)
    send(traced.adapter, "a", to="orders")
    traced.wait_for(1)
    with traced.adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        message = session.create_consumer(Queue("archive")).receive(60)
    first = traced.exporter.get_finished_spans()[0]
    assert f"{first.context.span_id:016x}" in message.properties["traceparent"]


def test_durations_and_counts_are_measured(traced):
    traced = traced()
    start(traced, Inbox(ValueError()))
    send(traced.adapter, "a", to="orders")
    traced.wait_for(2)
    points = traced.measurements()
    durations = points["messaging.client.operation.duration"]
    operations = {point.attributes["messaging.operation.name"]: point for point in durations}
    assert (operations["send"].count, operations["settle"].count) == (1, 2)
    assert operations["send"].explicit_bounds[0] == 0.005
    errors = {point.attributes.get("error.type"): point.count for point in points["messaging.process.duration"]}
    assert errors == {"ValueError": 1, None: 1}
    [sent], [consumed] = points["messaging.client.sent.messages"], points["messaging.client.consumed.messages"]
    assert (sent.value, consumed.value) == (1, 2)
    assert "messaging.message.id" not in sent.attributes


def test_a_pickled_factory_leaves_it_behind():
    assert type(pickle.loads(pickle.dumps(Tracing()))) is Hooks  # noqa: S301  # our own
