"""What a handler sends through its adapter joins the unit of its message."""

import asyncio
import contextvars
import os
import pickle
import queue
import threading

import pytest

from jmsjca import ConnectionFactory, Hooks, Message, Outcome, Queue, Reject, ResourceAdapter
from jmsjca.errors import IllegalStateError, ResourceAllocationError
from jmsjca.messages.converters import Converters
from tests.unit.inbound.listeners import PATIENCE, Recorder, waiting

BATCH = {"batch_size": 3}
MODES = {
    "serial": {"concurrency_mode": "serial"},
    "sync": {"concurrency_mode": "sync"},
    "cc": {"concurrency_mode": "cc"},
    "sync batches": {"concurrency_mode": "sync", **BATCH},
    "cc batches": {"concurrency_mode": "cc", **BATCH},
    "held": {"concurrency_mode": "cc", "hold_until_ack": True},
    "held batches": {"concurrency_mode": "cc", "hold_until_ack": True, **BATCH},
}
BATCHES = {name: spec for name, spec in MODES.items() if "batch_size" in spec}
modes = pytest.mark.parametrize("spec", MODES.values(), ids=MODES)
transactions = pytest.mark.parametrize("transaction", ["local", "required", "bean", "none"])


class Failing:
    """Sends one message in each way, and fails the first two times; the end of a batch is counted alone."""

    def __init__(self, adapter: ResourceAdapter) -> None:
        self.adapter = adapter
        self.publisher = adapter.publisher("out", str)
        self.failures = 2

    def on_message(self, message: Message) -> None:
        if message.end_of_batch:
            self.adapter.send("ends", "end")
        else:
            assert self.adapter.send("out", "sent").message_id
            self.adapter.send_many("out", ["one", "two"])
            self.publisher.send("published", priority=7)
        self.end([message])

    def on_batch(self, messages: list[Message]) -> None:
        self.adapter.send("out", "sent")
        self.adapter.send_many("out", ["one", "two"])
        self.publisher.send("published")
        self.end(messages)

    async def on_message_async(self, message: Message) -> None:
        if message.end_of_batch:
            await self.adapter.send_async("ends", "end")
        else:
            await asyncio.gather(
                self.adapter.send_async("out", "sent"),
                asyncio.to_thread(self.adapter.send_many, "out", ["one", "two"]),
                self.publisher.send_async("published"),
            )
        self.end([message])

    def end(self, messages: list[Message]) -> None:
        if self.failures and not messages[0].end_of_batch:
            self.failures -= 1
            raise ValueError("not yet")
        for message in messages:
            message.acknowledge()


ALL = ["one", "published", "sent", "two"]


def bodies(adapter, name="out"):
    return sorted(body for body, _ in waiting(adapter, name))


def run_until_committed(adapter, recorder, handler, **spec):
    adapter.listener("q", **spec)(handler)
    with adapter:
        adapter.send("q", "a")
        while recorder.outcomes.get(timeout=PATIENCE)[0] is not Outcome.COMMITTED:
            pass


def run_until_rejected(adapter, url, handler):
    adapter.listener("q", redelivery_handling="3:move(queue:dead)")(handler)
    with adapter, ConnectionFactory(url).create_connection() as connection:
        adapter.send("q", "a")
        assert connection.create_session().create_consumer(Queue("dead")).receive(PATIENCE).body == "a"


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def url(tmp_path):
    return f"embedded://{tmp_path}/broker.db"


@pytest.fixture
def adapter(url, recorder):
    return ResourceAdapter(url, hooks=[recorder])


@transactions
class TestModes:
    """Three attempts, of which the last one commits: its sends alone reach the broker, unless units do not send."""

    @modes
    def test_of_functions(self, adapter, recorder, spec, transaction):
        handler = Failing(adapter)
        run_until_committed(adapter, recorder, handler.on_message, transaction=transaction, **spec)
        joins = transaction in ("local", "required")
        assert bodies(adapter) == sorted(ALL * (1 if joins else 3))
        assert len(bodies(adapter, "ends")) == ((1 if joins else 3) if "batch_size" in spec else 0)

    @modes
    def test_of_coroutines(self, adapter, recorder, spec, transaction):
        handler = Failing(adapter)
        run_until_committed(adapter, recorder, handler.on_message_async, transaction=transaction, **spec)
        joins = transaction in ("local", "required")
        assert bodies(adapter) == sorted(ALL * (1 if joins else 3))
        assert len(bodies(adapter, "ends")) == ((1 if joins else 3) if "batch_size" in spec else 0)

    @pytest.mark.parametrize("spec", BATCHES.values(), ids=BATCHES)
    def test_of_whole_batches(self, adapter, recorder, spec, transaction):
        handler = Failing(adapter)
        run_until_committed(adapter, recorder, handler.on_batch, transaction=transaction, **spec)
        assert bodies(adapter) == sorted(ALL * (1 if transaction in ("local", "required") else 3))


@modes
def test_nothing_is_sent_before_the_commit(adapter, recorder, spec):
    seen = queue.Queue()

    def handler(message):
        if not message.end_of_batch:
            adapter.send("out", "sent")
            seen.put(bodies(adapter))
        message.acknowledge()

    run_until_committed(adapter, recorder, handler, **spec)
    assert (seen.get(timeout=PATIENCE), bodies(adapter)) == ([], ["sent"])


def test_a_rejected_message_takes_its_sends_with_it(adapter, url):
    def handler(message):
        adapter.send("out", "sent")
        raise Reject("never")

    run_until_rejected(adapter, url, handler)
    assert bodies(adapter) == []


class TestOutside:
    def test_sends_at_once_in_the_block(self, adapter, recorder):
        seen = queue.Queue()

        def handler(message):
            adapter.send("out", "joined")
            with adapter.outside():
                adapter.send("out", "at once")
                adapter.publisher("out", str).send("published")
                with adapter.outside():
                    adapter.send_many("out", ["one", "two"])
                adapter.send("out", "again")
            adapter.send("out", "joined too")
            seen.put(bodies(adapter))

        run_until_committed(adapter, recorder, handler)
        at_once = ["again", "at once", "one", "published", "two"]
        assert seen.get(timeout=PATIENCE) == at_once
        assert bodies(adapter) == sorted([*at_once, "joined", "joined too"])

    def test_sends_of_coroutines_at_once_and_of_others_in_the_unit(self, adapter, recorder):
        seen, entered, sent = queue.Queue(), asyncio.Event(), asyncio.Event()

        async def send_outside():
            with adapter.outside():
                entered.set()
                await sent.wait()
                await adapter.send_async("out", "at once")

        async def handler(message):
            task = asyncio.create_task(send_outside())
            await entered.wait()
            await adapter.send_async("out", "joined")
            sent.set()
            await task
            seen.put(bodies(adapter))

        run_until_committed(adapter, recorder, handler)
        assert seen.get(timeout=PATIENCE) == ["at once"]
        assert bodies(adapter) == ["at once", "joined"]

    def test_has_no_effect_without_a_delivery(self, adapter):
        with adapter, adapter.outside():
            adapter.send("out", "a")
        assert bodies(adapter) == ["a"]

    def test_of_another_adapter_has_no_effect(self, adapter, recorder, url):
        other, seen = ResourceAdapter(url), queue.Queue()

        def handler(message):
            with other.outside():
                adapter.send("out", "sent")
            seen.put(bodies(adapter))

        run_until_committed(adapter, recorder, handler)
        assert (seen.get(timeout=PATIENCE), bodies(adapter)) == ([], ["sent"])


class TestAtOnce:
    """Sends that are part of no unit, although a handler makes them."""

    def check(self, adapter, recorder, send, **spec):
        seen = queue.Queue()

        def handler(message):
            send()
            seen.put(bodies(adapter))

        run_until_committed(adapter, recorder, handler, **spec)
        assert seen.get(timeout=PATIENCE) == ["sent"]

    def test_another_adapter(self, adapter, recorder, url):
        with ResourceAdapter(url) as other:
            self.check(adapter, recorder, lambda: other.send("out", "sent"))

    def test_a_factory_without_an_adapter(self, adapter, recorder, url):
        factory = ConnectionFactory(url)
        self.check(adapter, recorder, lambda: factory.send("out", "sent"))
        factory.close()

    def test_a_factory_with_a_user_of_its_own(self, adapter, recorder):
        factory = adapter.connection_factory(user_name="somebody")
        self.check(adapter, recorder, lambda: factory.send("out", "sent"))
        factory.close()

    def test_a_factory_of_one_domain(self, adapter, recorder):
        factory = adapter.connection_factory(kind="queue")
        self.check(adapter, recorder, lambda: factory.send("out", "sent"))
        factory.close()

    def test_another_broker(self, adapter, recorder, tmp_path):
        def send():
            adapter.send("out", "sent")

        with ResourceAdapter(f"embedded://{tmp_path}/other.db") as other:
            other.send("q", "a")
        seen = queue.Queue()

        @adapter.listener("q", connection_url=f"embedded://{tmp_path}/other.db")
        def handler(message):
            send()
            seen.put(bodies(adapter))

        with adapter:
            recorder.await_outcome(Outcome.COMMITTED)
        assert seen.get(timeout=PATIENCE) == ["sent"]

    def test_a_thread_that_the_handler_starts(self, adapter, recorder):
        def send():
            thread = threading.Thread(target=adapter.send, args=("out", "sent"))
            thread.start()
            thread.join(PATIENCE)

        self.check(adapter, recorder, send)

    def test_a_task_that_outlives_its_handler(self, adapter, recorder):
        """It joins while the handler runs, and sends at once afterwards."""
        outcomes = queue.Queue()

        async def background(settled):
            await adapter.send_async("out", "joined")
            settled.set()
            outcomes.put(await asyncio.to_thread(recorder.outcomes.get, timeout=PATIENCE))
            await adapter.send_async("out", "later")
            outcomes.put("sent")

        async def handler(message):
            joined = asyncio.Event()
            tasks.append(asyncio.create_task(background(joined)))
            await joined.wait()
            if message.delivery_count == 1:
                raise ValueError("once")

        tasks = []
        adapter.listener("q", redelivery_handling="1:move(queue:dead)")(handler)
        with adapter:
            adapter.send("q", "a")
            assert outcomes.get(timeout=PATIENCE)[0] is Outcome.ROLLED_BACK
            assert outcomes.get(timeout=PATIENCE) == "sent"
        assert bodies(adapter) == ["later"]

    def test_a_context_of_a_handler_that_has_returned(self, adapter, recorder):
        contexts = queue.Queue()

        def handler(message):
            contexts.put(contextvars.copy_context())
            adapter.send("out", "joined")

        adapter.listener("q")(handler)
        with adapter:
            adapter.send("q", "a")
            recorder.await_outcome(Outcome.COMMITTED)
            contexts.get(timeout=PATIENCE).run(adapter.send, "out", "later")
        assert bodies(adapter) == ["joined", "later"]

    def test_a_held_message_after_its_handler_has_returned(self, adapter, recorder):
        held = queue.Queue()

        def handler(message):
            adapter.send("out", "joined")
            held.put((message, contextvars.copy_context()))

        adapter.listener("q", concurrency_mode="cc", hold_until_ack=True)(handler)
        with adapter:
            adapter.send("q", "a")
            message, context = held.get(timeout=PATIENCE)
            while adapter.activations[0].stats.n_active_endpoints:  # until the handler has returned
                pass
            context.run(adapter.send, "out", "at once")
            assert bodies(adapter) == ["at once"]
            message.acknowledge()
            recorder.await_outcome(Outcome.COMMITTED)
        assert bodies(adapter) == ["at once", "joined"]

    def test_a_request(self, adapter, recorder):
        """It would wait in vain for the reply to a message that is sent at the commit."""
        replies = queue.Queue()

        @adapter.listener("questions")
        def answer(body: str) -> str:
            return f"answer to {body}"

        @adapter.listener("q")
        def ask(message):
            replies.put(adapter.request("questions", message.body, timeout=PATIENCE).body)

        with adapter:
            adapter.send("q", "a")
            assert replies.get(timeout=PATIENCE) == "answer to a"

    def test_a_forked_child(self, adapter, url):
        """It is no part of the delivery of its parent."""
        statuses = queue.Queue()

        def handler(message):
            if not (child := os.fork()):
                try:
                    adapter.send("out", "of the child")
                    os._exit(0)
                finally:
                    os._exit(1)
            statuses.put(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            raise Reject("never")

        run_until_rejected(adapter, url, handler)
        assert (statuses.get(timeout=PATIENCE), bodies(adapter)) == (0, ["of the child"])


class TestJoined:
    """Details of sends that join."""

    def test_a_factory_of_the_adapter(self, adapter, recorder):
        factory, seen = adapter.connection_factory(), queue.Queue()

        def handler(message):
            factory.send("out", "sent")
            seen.put(bodies(adapter))

        run_until_committed(adapter, recorder, handler)
        factory.close()
        assert (seen.get(timeout=PATIENCE), bodies(adapter)) == ([], ["sent"])

    def test_a_pickled_factory_belongs_to_no_adapter(self, url):
        adapter, seen = ResourceAdapter(url), queue.Queue()
        factory = pickle.loads(pickle.dumps(adapter.connection_factory()))  # noqa: S301  # of this process

        @adapter.listener("q")
        def handler(message):
            factory.send("out", "sent")
            seen.put(bodies(adapter))

        with adapter:
            adapter.send("q", "a")
            assert seen.get(timeout=PATIENCE) == ["sent"]
        factory.close()

    def test_the_url_of_the_same_broker(self, adapter, recorder, url):
        """Options and credentials do not make another broker."""
        seen = queue.Queue()

        def handler(message):
            adapter.send("out", "sent")
            seen.put(bodies(adapter))

        run_until_committed(adapter, recorder, handler, connection_url=f"{url}?JMSJCA.NoXA=true")
        assert (seen.get(timeout=PATIENCE), bodies(adapter)) == ([], ["sent"])

    def test_options_and_headers_are_those_of_a_send(self, adapter, recorder, url):
        sent = queue.Queue()

        def handler(message):
            options = {"priority": 7, "properties": {"region": "EU"}, "correlation_id": "c", "time_to_live": 60.0}
            sent.put(adapter.send("out", {"fruit": "pear"}, duplicate_id="1", **options))

        run_until_committed(adapter, recorder, handler)
        with ConnectionFactory(url).create_connection() as connection:
            got = connection.create_session().create_consumer(Queue("out")).receive(timeout=0)
        told = sent.get(timeout=PATIENCE)
        assert (got.message_id, got.priority, got.correlation_id, got.expiration) == (
            (told.message_id, 7, "c", told.expiration)
        )
        assert (got.body, got.get_string_property("region"), got.get_string_property("_AMQ_DUPL_ID")) == (
            ('{"fruit":"pear"}', "EU", "1")
        )

    @transactions
    def test_many_of_which_one_cannot_be_sent_are_not_sent(self, adapter, recorder, transaction):
        """All or none, also if the handler catches the error."""
        errors = queue.Queue()

        def handler(message):
            if errors.qsize():
                return
            large = b"x" * (adapter.limits.message_bytes + 1)
            try:
                adapter.send_many("out", ["one", large])
            except ResourceAllocationError as error:
                errors.put(error)

        run_until_committed(adapter, recorder, handler, transaction=transaction)
        assert (errors.qsize(), bodies(adapter)) == (1, [])

    def test_hooks_see_the_send_and_may_send(self, url, recorder):
        class Audit(Hooks):
            def around_send(self, message, destination, call_next):
                if destination.name == "out":
                    adapter.send("audit", "sent")
                call_next()

        adapter = ResourceAdapter(url, hooks=[recorder, Audit()])
        run_until_committed(adapter, recorder, lambda message: adapter.send("out", "sent"))
        assert (bodies(adapter), bodies(adapter, "audit")) == (["sent"], ["sent"])

    def test_threads_with_the_context_of_the_handler(self, adapter, recorder):
        count = 200

        async def handler(message, session):
            producer = session.create_producer(Queue("out"))
            sends = [asyncio.to_thread(adapter.send, f"out{number % 3}", "a") for number in range(count)]
            tasks = [asyncio.create_task(send) for send in sends]
            for _ in range(count):
                producer.send("a")
                await asyncio.sleep(0)
            await asyncio.gather(*tasks)

        run_until_committed(adapter, recorder, handler)
        assert sum(len(bodies(adapter, f"out{number}")) for number in range(3)) == count
        assert len(bodies(adapter)) == count

    def test_a_send_that_ends_after_its_handler_is_refused(self, url, recorder):
        """As one whose await was cancelled: it must not be sent at once, as its unit may be rolled back."""
        entered, go_on, sent = threading.Event(), threading.Event(), queue.Queue()

        class Slow:
            def text(self):
                entered.set()
                go_on.wait(PATIENCE)
                return "late"

        def send():
            try:
                slow.send("out", Slow())
            except IllegalStateError:
                sent.put("refused")

        def handler(message):
            threading.Thread(target=contextvars.copy_context().run, args=(send,)).start()
            entered.wait(PATIENCE)
            raise Reject("never")

        converters = Converters()
        converters.register(Slow, to_message=Slow.text)
        slow = ResourceAdapter(url, hooks=[recorder], converters=converters)
        run_until_rejected(slow, url, handler)
        go_on.set()
        assert sent.get(timeout=PATIENCE) == "refused"
        slow.stop()
        assert bodies(slow) == []

    def test_a_coroutine_waits_for_a_send_on_another_thread(self, url, recorder):
        """A hook around sends may take its time, while other coroutines of the loop go on."""
        entered, go_on = threading.Event(), threading.Event()

        class Slow(Hooks):
            def around_send(self, message, destination, call_next):
                if destination.name == "out":
                    entered.set()
                    go_on.wait(PATIENCE)
                call_next()

        async def handler(message):
            sending = asyncio.create_task(adapter.send_async("out", "sent"))
            await asyncio.to_thread(entered.wait, PATIENCE)
            go_on.set()
            await sending

        adapter = ResourceAdapter(url, hooks=[recorder, Slow()])
        run_until_committed(adapter, recorder, handler)
        assert bodies(adapter) == ["sent"]
