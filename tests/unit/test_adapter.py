"""The resource adapter: listeners, start and stop, serving until told to end."""

import asyncio
import queue
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

import jmsjca
from jmsjca import Hooks, Message, Queue, ResourceAdapter, Topic
from jmsjca.errors import (
    ArgumentTypeError,
    ConfigurationError,
    IllegalStateError,
    InvalidActivationSpecError,
    InvalidSelectorError,
    InvalidURLError,
    JMSError,
    UnknownSchemeError,
)
from tests.support.interruptions import Interruption, TimeLimitError, each_moment
from tests.unit.inbound.listeners import PATIENCE, Inbox, Recorder, send
from tests.unit.providers.embedded.test_group_commit import in_background

HIDDEN = "s3cr3t"


def test_listener_returns_the_function_itself(jms_broker_url):
    adapter = ResourceAdapter(jms_broker_url)

    def handler(message: Message) -> str:
        return f"handled {message}"

    assert adapter.listener("q")(handler) is handler
    assert [a.spec.source() for a in adapter.activations] == [Queue("q")]


def test_listener_declared_before_start_begins_with_it(jms_broker_url):
    adapter, inbox = ResourceAdapter(jms_broker_url), Inbox()
    adapter.listener(Queue("q"))(inbox)
    assert [a.status for a in adapter.activations] == ["Down"]
    send(adapter, "a")
    with adapter as entered:
        assert entered is adapter
        assert inbox.take(1) == [("a", 1)]
    assert [a.status for a in adapter.activations] == ["Down"]


def test_listener_declared_after_start_begins_at_once(jms_adapter):
    inbox = Inbox()
    jms_adapter.listener("q")(inbox)
    send(jms_adapter, "a")
    assert inbox.take(1) == [("a", 1)]


def test_adapter_can_be_started_again(jms_broker_url):
    adapter, inbox = ResourceAdapter(jms_broker_url), Inbox()
    adapter.listener("q")(inbox)
    for body in "ab":
        with adapter:
            send(adapter, body)
            assert inbox.take(1) == [(body, 1)]


def test_adapter_as_an_async_context_manager(jms_broker_url):
    adapter = ResourceAdapter(jms_broker_url)
    received: queue.Queue[str] = queue.Queue()

    @adapter.listener("q")
    async def handler(message: Message) -> None:
        received.put(message.body)

    async def serve() -> str:
        async with adapter as entered:
            assert entered is adapter
            await asyncio.to_thread(send, adapter, "a")
            return await asyncio.to_thread(received.get, True, PATIENCE)

    assert asyncio.run(serve()) == "a"
    assert [a.status for a in adapter.activations] == ["Down"]


def test_listener_of_a_topic(jms_broker_url):
    recorder, inbox = Recorder(), Inbox()
    adapter = ResourceAdapter(jms_broker_url, hooks=[recorder])
    adapter.listener("news", destination_type="topic")(inbox)
    with adapter:
        recorder.await_status("Connecting", "Up")
        with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
            session.create_producer(Topic("news")).send(session.create_text_message("a"))
        assert inbox.take(1) == [("a", 1)]


def test_durable_listener_gets_what_was_sent_meanwhile(jms_broker_url):
    recorder, inbox = Recorder(), Inbox()
    adapter = ResourceAdapter(jms_broker_url, hooks=[recorder])
    adapter.listener(Topic("news"), subscription_durability="Durable", subscription_name="s")(inbox)
    with adapter:
        recorder.await_status("Connecting", "Up")
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        session.create_producer(Topic("news")).send(session.create_text_message("meanwhile"))
    with adapter:
        assert inbox.take(1) == [("meanwhile", 1)]


def test_wrong_spec_is_refused_where_the_listener_is_declared(jms_adapter):
    with pytest.raises(InvalidActivationSpecError, match="concurrency_mode"):
        jms_adapter.listener("q", concurrency_mode="parallel")
    assert jms_adapter.activations == ()


def test_wrong_url_is_refused(jms_adapter):
    with pytest.raises(InvalidURLError):
        ResourceAdapter("no url")
    with pytest.raises(InvalidActivationSpecError, match="connection_url: 'no url'"):
        jms_adapter.listener("q", connection_url="no url")


def test_names_of_beans_are_texts():
    assert ResourceAdapter(None, None, None, None, None, None).activations == ()
    for name in ("mbean_object_name", "mbean_server_domain"):
        with pytest.raises(ArgumentTypeError, match=name):
            ResourceAdapter("embedded://", **{name: 1})


def test_adapter_shows_no_password():
    adapter = ResourceAdapter(f"amqp://ann:{HIDDEN}@host", "bob", HIDDEN)
    assert HIDDEN not in repr(adapter)
    assert "amqp://ann@host" in repr(adapter)


_SERVE = """
import sys
import threading
from jmsjca import Hooks, ResourceAdapter

class Tell(Hooks):
    def status_changed(self, endpoint, status):
        print(status, flush=True)

adapter = ResourceAdapter("embedded://served", hooks=[Tell()])
adapter.listener("q")(lambda message: None)
adapter.run()
print("after", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_run_serves_until_told_to_end(number):
    with subprocess.Popen([sys.executable, "-c", _SERVE], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().strip() for _ in range(2)]
        assert lines == ["Connecting", "Up"]
        process.send_signal(number)
        assert process.stdout.read().split() == ["Disconnecting", "Down", "after"]
        assert process.wait(PATIENCE) == 0


def test_run_restores_the_signal_handlers(jms_broker_url):
    class StopAtOnce(ResourceAdapter):
        def start(self) -> None:
            signal.raise_signal(signal.SIGTERM)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    adapter = StopAtOnce(jms_broker_url)
    adapter.listener("q")(print)
    adapter.run()
    assert {number: signal.getsignal(number) for number in before} == before


def test_run_in_a_coroutine_is_refused_with_the_asynchronous_way(jms_broker_url):
    """It would block the event loop until a signal: the alarm is one, so that the call ends in any case."""

    async def main() -> None:
        adapter.run()

    adapter = ResourceAdapter(jms_broker_url)
    adapter.listener("q")(print)
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGTERM))
    signal.alarm(2)
    try:
        with pytest.raises(IllegalStateError, match=r"block the event loop.*'async with adapter:' and 'await"):
            asyncio.run(main())
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert all(each.status == "Down" for each in adapter.activations)


def test_stop_closes_the_connections_that_a_handler_sends_over_meanwhile(jms_adapter):
    """Not before the handler has returned, which would open other ones."""
    entered, intake_ended = threading.Event(), threading.Event()

    def handler(message: Message) -> None:
        entered.set()
        assert intake_ended.wait(PATIENCE)
        adapter.send("out", "from the handler")

    class Watch(Hooks):
        def status_changed(self, endpoint, status):
            if status == "Disconnecting":
                intake_ended.set()

    adapter = ResourceAdapter(jms_adapter.connection_url, hooks=[Watch()])
    adapter.listener("q")(handler)
    adapter.start(wait=PATIENCE)
    adapter.send("q", "a")
    assert entered.wait(PATIENCE)
    assert adapter.stop(PATIENCE)
    assert adapter.pool_stats() == {}


def test_the_end_of_a_stop_by_a_handler_closes_the_connections_that_it_sends_over(jms_broker_url):
    def handler(message: Message) -> None:
        adapter.stop()
        adapter.send("out", "from the handler")

    adapter = ResourceAdapter(jms_broker_url)
    adapter.listener("q")(handler)
    adapter.send("q", "a")
    adapter.start()
    deadline = time.monotonic() + PATIENCE
    while adapter.activations[0].status != "Down" or adapter.pool_stats():
        assert time.monotonic() < deadline, (adapter.activations[0].status, adapter.pool_stats())
        threading.Event().wait(0.01)


def test_interrupted_stop_can_be_repeated(jms_broker_url):
    """The second call ends the listener, although the first one has marked it as stopping."""

    def play(interruption: Interruption) -> None:
        adapter = ResourceAdapter(jms_broker_url)
        adapter.listener(Queue("q"))(Inbox())
        adapter.start()
        with suppress(TimeLimitError), interruption.planted():
            adapter.stop()
        assert in_background(adapter.stop).result(PATIENCE)
        assert [a.status for a in adapter.activations] == ["Down"]

    package = Path(jmsjca.__file__).parent
    places = ["adapter.py", "inbound/shutdown.py", "inbound/activation.py", "inbound/lifecycle.py"]
    assert each_moment(play, TimeLimitError, *(str(package / place) for place in places)) > 20


def test_misspelt_header_of_a_handler_is_refused_where_it_is_declared():
    adapter = ResourceAdapter("embedded://declared")
    for decorated in (lambda message, delivery_cout: ..., lambda order, delivery_cout: ...):
        decorated.__annotations__ = {"order": dict, "delivery_cout": int}
        with pytest.raises(ConfigurationError, match=r"'delivery_cout'.*did you mean delivery_count\?"):
            adapter.listener("orders")(decorated)
    assert not adapter.activations


def test_selector_with_an_unknown_variable_names_those_that_there_are():
    adapter = ResourceAdapter("embedded://declared")
    with pytest.raises(InvalidSelectorError, match=r"\$\{regoin\} has no value \(did you mean \$\{region\}\?\)"):
        adapter.listener("orders", selector="region=${regoin}", selector_variables={"region": "EU"})(print)
    with pytest.raises(InvalidSelectorError, match=r"\$\{regoin\} has no value.*selector_variables"):
        adapter.listener("orders", selector="region=${regoin}")(print)


def test_listener_without_parentheses_is_refused():
    def on_order(message: Message) -> None: ...

    with pytest.raises(
        InvalidActivationSpecError, match=r"on_order has no destination: write @adapter\.listener\('orders'\)"
    ):
        ResourceAdapter("embedded://declared").listener(on_order)


def test_run_without_listeners_is_refused():
    with pytest.raises(IllegalStateError, match=r"no listeners.*@adapter\.listener"):
        ResourceAdapter("embedded://declared").run()


def test_bad_selector_or_scheme_of_a_listener_is_refused_where_it_is_declared():
    adapter = ResourceAdapter("embedded://declared")
    with pytest.raises(InvalidSelectorError):
        adapter.listener("orders", selector="total = = 1")(print)
    with pytest.raises(UnknownSchemeError, match="amqp://"):
        adapter.listener("orders", connection_url="amqpp://localhost")(print)
    assert not adapter.activations


@pytest.mark.parametrize(
    ("url", "arguments"),
    [
        ("amqp://127.0.0.1:1", {"retry_timeout": 0.2}),
        ("amqp://127.0.0.1:1?JMSJCA.retrytimeout=200", {}),
    ],
)
def test_send_without_a_broker_is_recorded_once_and_ends_with_the_retry_timeout(url, arguments, caplog):
    with ResourceAdapter(url, **arguments) as adapter, pytest.raises(JMSError):
        adapter.send("orders", "x")
    (record,) = [each for each in caplog.records if "is repeated" in each.getMessage()]
    assert record.levelname == "WARNING"
    assert "A send to queue:orders failed; it is repeated for at most 0.2 s" in record.getMessage()


def test_pool_of_a_listener_that_its_mode_does_not_use_is_refused():
    adapter = ResourceAdapter("embedded://declared")
    with pytest.raises(InvalidActivationSpecError, match=r"'serial'.*write concurrency=8"):
        adapter.listener("orders", endpoint_pool_max_size=8)
    adapter.listener("orders", endpoint_pool_max_size=8, options={"JMSJCA.concurrencymode": "cc"})(print)
    adapter.listener("orders", concurrency=8)(print)
    assert [each.spec.concurrency_mode for each in adapter.activations] == ["cc", "cc"]
