"""OpenTelemetry spans and duration metrics of listeners and senders, as hooks. The extra ``tracing`` adds the API.

The names follow the semantic conventions for messaging, version 1.44.
"""

import threading
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter, time_ns
from typing import Any

from jmsjca import __version__
from jmsjca.destinations import Destination
from jmsjca.errors import JMSError, ProviderNotInstalledError
from jmsjca.hooks import Hooks
from jmsjca.messages.message import Message

__all__ = ["Tracing"]

_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
_DESTINATION = "messaging.destination.name"
_Attributes = dict[str, str | int | bool]


class Tracing(Hooks):
    """Creates a span for each send, receive, call of a handler and settlement, and measures their durations.

    A send writes its context into the message properties (``traceparent``, ``tracestate``, or as the application's
    propagator defines), where Java's instrumentation reads it. In a transaction the message carries the context of a
    span "create", and the commit has the span "send". The spans "receive" and "process" link to the context in the
    message. Sends of a handler belong to the span of its delivery. Pickling a connection factory replaces this object
    by plain `Hooks`.

    Args:
        tracer_provider: Provider of tracers; None for the application's global provider.
        meter_provider: Provider of meters; None for the application's global provider.
        system: The attribute ``messaging.system``: "jms", "activemq", "rabbitmq", or a custom value.
        parent: True to make the span of a delivery also a child of the span of the send, in the same trace.
        max_destinations: Number of destinations that the metrics name. Metrics of all further destinations, such as
            unique reply queues, have no ``messaging.destination.name``. Spans always have it.

    Raises:
        ProviderNotInstalledError: The extra is not installed.
    """

    def __init__(
        self,
        tracer_provider: Any = None,
        meter_provider: Any = None,
        *,
        system: str = "jms",
        parent: bool = False,
        max_destinations: int = 100,
    ) -> None:
        try:
            from opentelemetry import context, metrics, propagate, trace  # an extra
        except ImportError as error:
            raise ProviderNotInstalledError(f'Tracing needs {error.name}: pip install "jmsjca[tracing]"') from error
        self._context, self._propagate, self._trace = context, propagate, trace
        self._tracer = trace.get_tracer("jmsjca", __version__, tracer_provider)
        meter = metrics.get_meter("jmsjca", __version__, meter_provider)
        self._operations = _histogram(meter, "messaging.client.operation.duration", "Duration of an operation.")
        self._processing = _histogram(meter, "messaging.process.duration", "Duration of a call of the handler.")
        self._sent = meter.create_counter("messaging.client.sent.messages", "{message}", "Messages that were sent.")
        self._consumed = meter.create_counter(
            "messaging.client.consumed.messages", "{message}", "Messages that were received."
        )
        self._system = system
        self._parent = parent
        self._max_destinations = max_destinations
        self._lock = threading.Lock()
        self._measured_names: set[str | int | bool] = set()

    def around_send(self, message: Message, destination: Destination, call_next: Callable[[], None]) -> None:
        """Create a span "send", and inject its context into the message."""
        attributes = self._attributes("send", destination)
        span = self._trace.SpanKind.PRODUCER
        with self._span(attributes, span, _identified(attributes, message), [], duration=self._operations):
            self._inject(message)
            call_next()
            self._sent.add(1, self._measured(attributes))

    def around_create(self, message: Message, destination: Destination, call_next: Callable[[], None]) -> None:
        """Create a span "create", and inject its context into the message. The commit sends the message."""
        attributes = self._attributes("create", destination)
        span = self._trace.SpanKind.PRODUCER
        with self._span(attributes, span, _identified(attributes, message), [], duration=self._operations):
            self._inject(message)
            call_next()

    def around_commit(self, sends: Sequence[tuple[Message, Destination]], call_next: Callable[[], None]) -> None:
        """Create a span "send" for the messages of a transaction, linked to the contexts that they carry."""
        messages, destinations = [message for message, _ in sends], Counter(to for _, to in sends)
        attributes = self._attributes("send", next(iter(destinations)) if len(destinations) == 1 else None)
        details = _of_messages(attributes, messages)
        links = self._links([self._extract(message) for message in messages])
        with self._span(attributes, self._trace.SpanKind.CLIENT, details, links, duration=self._operations):
            call_next()
        for destination, number in destinations.items():
            self._sent.add(number, self._measured(self._attributes("send", destination)))

    def received(
        self, source: Destination, message: Message | None, seconds: float, error: Exception | None = None
    ) -> None:
        """Create a span "receive", linked to the context of the message if there is one, or with the error."""
        attributes = self._attributes("receive", source)
        details, links = attributes, []
        if message is not None:
            details, links = _identified(attributes, message), self._links([self._extract(message)])
            self._consumed.add(1, self._measured(attributes))
        end = time_ns()
        span = self._tracer.start_span(
            _span_name(attributes), None, self._trace.SpanKind.CLIENT, details, links, end - round(seconds * 1e9)
        )
        if error is not None:
            failed = {"error.type": type(error).__qualname__}
            attributes = {**attributes, **failed}
            span.set_attributes(failed)
            span.record_exception(error)
            span.set_status(self._trace.StatusCode.ERROR, str(error))
        span.end(end)
        self._operations.record(seconds, self._measured(attributes))

    def around_delivery(self, endpoint: str, message: Message, call_next: Callable[[], object]) -> object:
        """Create a span "process", linked to the context in the message."""
        attributes = self._attributes("process", _destination_of(message))
        sent_in = self._extract(message)
        details = {**_identified(attributes, message), "jmsjca.listener": endpoint}
        kind = self._trace.SpanKind.CONSUMER
        context = sent_in if self._parent else None
        self._consumed.add(1, self._measured(attributes))
        with self._span(attributes, kind, details, self._links([sent_in]), duration=self._processing, context=context):
            return call_next()

    def around_settlement(self, endpoint: str, messages: Sequence[Message], call_next: Callable[[], None]) -> None:
        """Create a span "settle" for a unit, linked to the contexts in its messages."""
        destination = _destination_of(messages[0]) if messages else None
        attributes = self._attributes("settle", destination)
        details = {**_of_messages(attributes, messages), "jmsjca.listener": endpoint}
        links = self._links([self._extract(message) for message in messages])
        with self._span(attributes, self._trace.SpanKind.CLIENT, details, links, duration=self._operations):
            call_next()

    def __reduce__(self) -> tuple[type[Hooks], tuple[()]]:
        return Hooks, ()

    def _attributes(self, operation: str, destination: Destination | None) -> _Attributes:
        """Return the span attributes that metrics share; `_measured` removes some of them."""
        attributes: _Attributes = {
            "messaging.system": self._system,
            "messaging.operation.name": operation,
            "messaging.operation.type": operation,
        }
        if destination is not None and destination.temporary:
            attributes["messaging.destination.temporary"] = True
        elif destination is not None:
            attributes[_DESTINATION] = destination.name
        return attributes

    def _measured(self, attributes: _Attributes) -> _Attributes:
        """Return the attributes of a metric. Their values are bounded: further destinations have no name."""
        name = attributes.get(_DESTINATION)
        if name is None or name in self._measured_names:
            return attributes
        with self._lock:
            if name in self._measured_names or len(self._measured_names) < self._max_destinations:
                self._measured_names.add(name)
                return attributes
        return {key: value for key, value in attributes.items() if key != _DESTINATION}

    @contextmanager
    def _span(
        self,
        attributes: _Attributes,
        kind: Any,
        details: Mapping[str, str | int | bool],
        links: Sequence[Any],
        *,
        duration: Any,
        context: Any = None,
    ) -> Generator[None]:
        """Run the block in a new current span, and measure its duration. An exception becomes an event of the span."""
        began, error_type = perf_counter(), None
        with self._tracer.start_as_current_span(
            _span_name(attributes), context, kind, details, links, record_exception=True, set_status_on_exception=True
        ) as span:
            try:
                yield
            except BaseException as error:
                error_type = type(error).__qualname__
                span.set_attribute("error.type", error_type)
                raise
            finally:
                failed = {"error.type": error_type} if error_type else {}
                duration.record(perf_counter() - began, {**self._measured(attributes), **failed})

    def _inject(self, message: Message) -> None:
        carrier: dict[str, str] = {}
        self._propagate.inject(carrier)
        try:
            for name, value in carrier.items():
                message.properties[_property_name(name)] = value
        except JMSError:  # a received message that is forwarded has read-only properties, and keeps its context
            return

    def _extract(self, message: Message) -> Any:
        """Return the context in a message; an empty context if there is none."""
        carrier: dict[str, str] = {}
        try:
            for field in self._propagate.get_global_textmap().fields:
                value = message.properties.get(_property_name(field))
                if isinstance(value, str):
                    carrier[field] = value
        except JMSError:  # damaged properties
            carrier.clear()
        return self._propagate.extract(carrier, self._context.Context())

    def _links(self, contexts: Sequence[Any]) -> list[Any]:
        spans = (self._trace.get_current_span(context).get_span_context() for context in contexts)
        return [self._trace.Link(span) for span in spans if span.is_valid]


def _histogram(meter: Any, name: str, text: str) -> Any:
    return meter.create_histogram(name, "s", text, explicit_bucket_boundaries_advisory=_SECONDS)


def _property_name(field: str) -> str:
    """Return the property for a field such as ``X-B3-TraceId``, named as by OpenTelemetry for Java."""
    return field.replace("-", "__dash__")


def _span_name(attributes: _Attributes) -> str:
    keys = "messaging.operation.name", _DESTINATION
    return " ".join(str(attributes[key]) for key in keys if key in attributes)


def _of_messages(attributes: _Attributes, messages: Sequence[Message]) -> _Attributes:
    """Add the message id if there is one message, or the number of messages."""
    if len(messages) == 1:
        return _identified(attributes, messages[0])
    return {**attributes, "messaging.batch.message_count": len(messages)}


def _destination_of(message: Message) -> Destination | None:
    try:
        return message.destination
    except JMSError:  # damaged headers
        return None


def _identified(attributes: _Attributes, message: Message) -> _Attributes:
    """Add the message ids. Only spans may have them, because every value is different."""
    try:
        ids = {
            "messaging.message.id": message.message_id,
            "messaging.message.conversation_id": message.correlation_id,
        }
    except JMSError:
        return dict(attributes)
    return {**attributes, **{name: str(value) for name, value in ids.items() if value}}
