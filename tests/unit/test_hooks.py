"""Hooks around handlers and sends: their order, and that a failing notification harms nothing."""

import pickle
from contextlib import suppress

import pytest

from jmsjca import ConnectionFactory, Hooks, JMSError, Message, Outcome, Queue, Requestor, ResourceAdapter, TextMessage
from jmsjca.errors import ArgumentTypeError, ConfigurationError, ConnectionLostError, MessageFormatError
from jmsjca.hooks import HookChain, hooks_of, use_hooks
from tests.unit.inbound.deliveries import until
from tests.unit.inbound.listeners import PATIENCE, Inbox, Recorder, send, waiting
from tests.unit.outbound.queues import QUEUE, shown


class Named(Hooks):
    def __init__(self, name: str, notes: list[str]) -> None:
        self.name, self.notes = name, notes

    def around_delivery(self, endpoint, message, call_next):
        self.notes.append(f"{self.name} before")
        try:
            return f"{self.name}({call_next()})"
        finally:
            self.notes.append(f"{self.name} after")

    def settled(self, endpoint, outcome, messages):
        self.notes.append(f"{self.name} {endpoint} {outcome.value} {messages}")


class Failing(Hooks):
    def settled(self, endpoint, outcome, messages):
        raise KeyError("settled")

    def status_changed(self, endpoint, status):
        raise KeyError("status")


def test_hooks_surround_the_handler_from_the_first_inwards():
    notes: list[str] = []
    chain = HookChain([Named("outer", notes), Named("inner", notes)])
    assert chain.deliver("e", TextMessage("a"), lambda: "result") == "outer(inner(result))"
    assert notes == ["outer before", "inner before", "inner after", "outer after"]


def test_handlers_exception_passes_all_hooks():
    notes: list[str] = []
    chain = HookChain([Named("outer", notes), Named("inner", notes)])
    with pytest.raises(ZeroDivisionError):
        chain.deliver("e", TextMessage("a"), lambda: 1 / 0)
    assert notes[-2:] == ["inner after", "outer after"]


def test_notices_come_in_order():
    notes: list[str] = []
    HookChain([Named("one", notes), Named("two", notes)]).settled("e", Outcome.COMMITTED, 3)
    assert notes == ["one e committed 3", "two e committed 3"]


def test_failing_notice_is_logged_and_changes_nothing(caplog):
    recorder = Recorder()
    chain = HookChain([Failing(), recorder])
    chain.settled("e", Outcome.LOST, 1)
    chain.status_changed("e", "Up")
    recorder.await_outcome(Outcome.LOST)
    recorder.await_status("Up")
    assert "Failing.settled" in caplog.text
    assert "Failing.status_changed" in caplog.text


def test_hooks_that_override_nothing_do_nothing():
    chain = HookChain([Hooks()])
    assert chain.deliver("e", TextMessage("a"), lambda: 1) == 1
    chain.settled("e", Outcome.COMMITTED, 1)
    chain.status_changed("e", "Up")


class RefuseOnce(Hooks):
    """Fails before the handler is called, the first time."""

    def __init__(self) -> None:
        self.failures = [KeyError("hook")]

    def around_delivery(self, endpoint: str, message: Message, call_next):
        if self.failures:
            raise self.failures.pop()
        return call_next()


def test_exception_of_a_hook_counts_as_the_handlers(jms_broker_url):
    recorder, inbox = Recorder(), Inbox()
    adapter = ResourceAdapter(jms_broker_url, hooks=[recorder, RefuseOnce(), Failing()])
    adapter.listener("q")(inbox)
    with adapter:
        send(adapter, "a")
        assert inbox.take(1) == [("a", 2)]
        recorder.await_outcome(Outcome.ROLLED_BACK)
        recorder.await_outcome(Outcome.COMMITTED)


class Handled(Hooks):
    """Notes each call of the handler."""

    def __init__(self) -> None:
        self.notes: list[tuple[str | None, bool]] = []
        self.seconds: list[float] = []

    def handled(self, endpoint, message, seconds, *, failed):
        self.notes.append((message and message.body, failed))
        self.seconds.append(seconds)


class FailingHandled(Hooks):
    def handled(self, endpoint, message, seconds, *, failed):
        raise KeyError("handled")


def test_each_call_of_the_handler_is_told_with_its_duration(jms_broker_url, caplog):
    recorder, told, inbox = Recorder(), Handled(), Inbox(ValueError())
    adapter = ResourceAdapter(jms_broker_url, hooks=[recorder, FailingHandled(), told])
    adapter.listener("q")(inbox)
    with adapter:
        send(adapter, "a")
        inbox.take(1)
        recorder.await_outcome(Outcome.ROLLED_BACK)
        recorder.await_outcome(Outcome.COMMITTED)
    assert told.notes == [("a", True), ("a", False)]
    assert min(told.seconds) > 0
    assert "FailingHandled.handled failed; nothing else changes" in caplog.text


def test_a_call_with_a_batch_and_one_with_its_end_are_told(jms_broker_url):
    whole, each = Handled(), Handled()
    adapter = ResourceAdapter(jms_broker_url)
    got = []

    @adapter.listener("whole", concurrency_mode="cc", batch_size=2)
    @use_hooks(whole)
    def take(messages: list[Message]) -> None:
        got.extend(messages)

    @adapter.listener("each", concurrency_mode="cc", batch_size=2)
    @use_hooks(each)
    def look(message: Message) -> None:
        got.append(message)

    with adapter:
        adapter.send_many("whole", ["a", "b"])
        adapter.send_many("each", ["c", "d"])
        until(lambda: len(got) >= 4 and {("c", False), ("d", False), (None, False)} <= set(each.notes))
        until(lambda: whole.notes)
    assert whole.notes[0] == ("a", False)


AUDIT = Queue("audit")


class Marking(Hooks):
    """Leaves its name in each message, and notes when its part of a send begins and ends."""

    def __init__(self, name: str = "mark", notes: list[str] | None = None) -> None:
        self.name, self.notes = name, notes if notes is not None else []

    def around_send(self, message, destination, call_next):
        message.properties["trail"] = f"{message.properties.get('trail', '')}{self.name} "
        self.notes.append(f"{self.name} before")
        try:
            call_next()
        finally:
            self.notes.append(f"{self.name} after")


class Seeing(Hooks):
    """Notes what is sent as it is when the hook is called."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, object]] = []

    def around_send(self, message, destination, call_next):
        self.seen.append((message.body, message.message_id, destination))
        call_next()


class Refusing(Hooks):
    """Fails before or after the send."""

    def __init__(self, error: BaseException, *, sends: bool = False) -> None:
        self.error, self.sends = error, sends

    def around_send(self, message, destination, call_next):
        if self.sends:
            call_next()
        raise self.error


class Dropping(Hooks):
    def around_send(self, message, destination, call_next):
        """Send nothing."""


@pytest.fixture
def hooked(jms_broker_url):
    """Opens a connection whose sends are surrounded by hooks."""
    opened = []

    def open_connection(*hooks, url=jms_broker_url):
        opened.append(ConnectionFactory(url, hooks=hooks).create_connection())
        opened[-1].start()
        return opened[-1]

    yield open_connection
    for connection in opened:
        connection.close()


def receive(connection, queue=QUEUE):
    with connection.create_session() as session:
        return session.create_consumer(queue).receive(PATIENCE)


def put(connection, body="a"):
    with connection.create_session() as session:
        session.create_producer(QUEUE).send(TextMessage(body))


def test_hooks_surround_a_send_from_the_first_inwards(hooked):
    notes: list[str] = []
    connection = hooked(Marking("outer", notes), Marking("inner", notes))
    put(connection)
    assert notes == ["outer before", "inner before", "inner after", "outer after"]
    assert receive(connection).properties["trail"] == "outer inner "


def test_hook_sees_the_headers_of_this_send(hooked):
    seeing = Seeing()
    connection = hooked(seeing)
    put(connection)
    assert seeing.seen == [("a", receive(connection).message_id, QUEUE)]


def test_transacted_send_is_noted_inside_and_sent_by_the_commit(hooked):
    notes: list[str] = []
    connection = hooked(Marking("m", notes))
    with connection.create_session(transacted=True) as session:
        session.create_producer(QUEUE).send(TextMessage("a"))
        assert (notes, shown(connection)) == (["m before", "m after"], [])
        session.commit()
    assert (len(notes), shown(connection)) == (2, ["a"])


def test_context_and_its_producers(jms_broker_url):
    with ConnectionFactory(jms_broker_url, hooks=[Marking()]).create_context() as context:
        context.create_producer().send(QUEUE, "a")
        with context.create_context() as second:
            second.create_producer(properties={"trail": "own "}).send(QUEUE, "b")
        consumer = context.create_consumer(QUEUE)
        trails = [consumer.receive(PATIENCE).properties["trail"] for _ in range(2)]
    assert trails == ["mark ", "own mark "]


def test_requests(hooked, in_adapter):
    in_adapter.listener(QUEUE)(lambda message: message.properties["trail"])
    with hooked(Marking()).create_session() as session, Requestor(session, QUEUE) as requestor:
        assert requestor.request(TextMessage("a"), PATIENCE).body == "mark "


@pytest.fixture
def in_adapter(jms_broker_url):
    with ResourceAdapter(jms_broker_url) as adapter:
        yield adapter


@pytest.mark.parametrize("transaction", ["local", "none"])
def test_what_a_handler_sends_and_replies_and_the_factory_of_its_adapter(jms_broker_url, transaction):
    replies = Queue("replies")
    adapter = ResourceAdapter(jms_broker_url, hooks=[Marking()])

    @adapter.listener(QUEUE, transaction=transaction)
    def handle(message, session):
        session.create_producer(AUDIT).send(TextMessage("handled"))
        return message.properties["trail"]

    with adapter, adapter.connection_factory().create_connection() as connection:
        with connection.create_session() as session:
            session.create_producer(QUEUE).send(TextMessage("a", reply_to=replies))
        reply = receive(connection, replies)
        assert (reply.body, reply.properties["trail"]) == ("mark ", "mark ")
        assert receive(connection, AUDIT).properties["trail"] == "mark "


@pytest.mark.parametrize("transacted", [False, True])
def test_exception_of_a_hook_fails_the_send_and_nothing_is_sent(hooked, transacted):
    """It is wrapped, as the original wraps what its interceptors raise."""
    connection = hooked(Marking("outer"), Refusing(KeyError("no")))
    with connection.create_session(transacted=transacted) as session:
        with pytest.raises(JMSError, match=r"hook.*KeyError\('no'\)") as caught:
            session.create_producer(QUEUE).send(TextMessage("a"))
        if transacted:
            session.commit()
    assert isinstance(caught.value.__cause__, KeyError)
    assert shown(connection) == []


def test_exception_after_the_send_takes_nothing_back(hooked):
    connection = hooked(Refusing(KeyError("late"), sends=True))
    with pytest.raises(JMSError):
        put(connection)
    assert shown(connection) == ["a"]


@pytest.mark.parametrize("error", [MessageFormatError("mine"), KeyboardInterrupt()])
def test_errors_of_ours_and_interrupts_pass_as_they_are(hooked, error):
    with pytest.raises(type(error)) as caught:
        put(hooked(Refusing(error)))
    assert caught.value is error


def test_failure_of_the_broker_passes_all_hooks(hooked):
    notes: list[str] = []
    connection = hooked(Marking("m", notes))
    with hooked().create_session() as session:
        gone = session.create_temporary_queue()
        gone.delete()
    with connection.create_session() as session, pytest.raises(JMSError):
        session.create_producer(gone).send(TextMessage("a"))
    assert notes == ["m before", "m after"]


def test_hook_that_does_not_go_on_drops_the_message(hooked):
    connection = hooked(Dropping())
    put(connection)
    assert shown(connection) == []


def test_refusal_in_a_handler_rolls_its_delivery_back(jms_broker_url):
    recorder = Recorder()
    adapter = ResourceAdapter(jms_broker_url, hooks=[recorder, RefusingOnce()])

    @adapter.listener("q")
    def handle(message, session):
        session.create_producer(AUDIT).send(TextMessage(f"delivery {message.delivery_count}"))

    with adapter:
        send(ResourceAdapter(jms_broker_url), "a")
        recorder.await_outcome(Outcome.ROLLED_BACK)
        recorder.await_outcome(Outcome.COMMITTED)
        with adapter.connection_factory().create_connection() as connection:
            assert shown(connection, AUDIT) == ["delivery 2"]


class RefusingOnce(Hooks):
    def __init__(self) -> None:
        self.errors = [KeyError("once")]

    def around_send(self, message, destination, call_next):
        if self.errors:
            raise self.errors.pop()
        call_next()


def test_hooks_go_with_a_pickled_factory(jms_broker_url):
    copy = pickle.loads(pickle.dumps(ConnectionFactory(jms_broker_url, hooks=[Marking("copied")])))  # noqa: S301  # our own
    with copy.create_connection() as connection:
        put(connection)
        assert receive(connection).properties["trail"] == "copied "


def test_factory_with_a_hook_that_cannot_be_pickled_cannot_either(jms_broker_url):
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(ConnectionFactory(jms_broker_url, hooks=[Recorder()]))


class Settling(Hooks):
    """Notes settlements, and does wrong around them."""

    def __init__(self, before=None, after=None, calls=1):
        self.before, self.after, self.calls = before, after, calls
        self.messages = []

    def around_settlement(self, endpoint, messages, call_next):
        self.messages.append([message.body for message in messages])
        if self.before:
            raise self.before
        for _ in range(self.calls):
            call_next()
        if self.after:
            raise self.after


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
@pytest.mark.parametrize(
    "fault", [{}, {"before": ValueError()}, {"after": ValueError()}, {"calls": 0}, {"calls": 2}], ids=str
)
def test_a_hook_around_settlements_changes_no_settlement(jms_broker_url, mode, fault):
    settling, recorder = Settling(**fault), Recorder()
    adapter = ResourceAdapter(jms_broker_url, hooks=[Settling(), settling, recorder])
    adapter.listener("q", concurrency_mode=mode)(Inbox(ValueError("at first")))
    with adapter:
        send(adapter, "a")
        outcomes = [recorder.outcomes.get(timeout=PATIENCE) for _ in range(2)]
    expected = [(Outcome.ROLLED_BACK, 1), (Outcome.COMMITTED, 1)]
    # In other modes another thread may report the commit of the redelivered message before the rollback is reported.
    assert outcomes == expected or (mode != "serial" and outcomes == expected[::-1])
    assert settling.messages == [["a"], ["a"]]
    assert waiting(adapter) == []


def test_the_error_of_a_settlement_stays_the_error():
    class Hides(Hooks):
        def around_settlement(self, endpoint, messages, call_next):
            with suppress(JMSError):
                call_next()

    def lose():
        raise ConnectionLostError("pulled out")

    with pytest.raises(ConnectionLostError, match="pulled out"):
        HookChain([Hides()]).settle("q", [], lose)


class TestHooksOfOneListener:
    def test_they_are_inside_those_of_the_adapter_and_leave_other_listeners_alone(self, jms_broker_url):
        notes: list[str] = []
        adapter = ResourceAdapter(jms_broker_url, hooks=[Named("adapter", notes)])

        @adapter.listener("decorated")
        @use_hooks(Named("outer", notes), Named("inner", notes))
        def decorated(body: str) -> str:
            return body

        @adapter.listener("plain")
        def plain(body: str) -> str:
            return body

        with adapter:
            adapter.request("plain", "a", timeout=PATIENCE)
            assert [note for note in notes if "before" in note] == ["adapter before"]
            assert adapter.request("decorated", "a", timeout=PATIENCE).body == "adapter(outer(inner(a)))"
        befores = [note for note in notes if "before" in note]
        assert befores == ["adapter before", "adapter before", "outer before", "inner before"]
        assert any(note.startswith("inner serial-QueueReceiver(decorated)") for note in notes)
        assert not any(note.startswith("inner serial-QueueReceiver(plain)") for note in notes)

    def test_the_function_itself_is_unchanged(self):
        @use_hooks(Named("one", notes := []))
        def handler(body: str) -> str:
            return body

        assert (handler("a"), notes, len(hooks_of(handler))) == ("a", [], 1)

    def test_they_see_what_the_handler_sends(self, jms_broker_url):
        adapter, sent = ResourceAdapter(jms_broker_url), []

        class Sends(Hooks):
            def around_send(self, message, destination, call_next):
                sent.append(f"{destination}")
                call_next()

        @adapter.listener("questions")
        @use_hooks(Sends())
        def answer(body: str, session) -> str:
            session.create_producer(Queue("copies")).send(session.create_text_message(body))
            return "answer"

        with adapter:
            assert adapter.request("questions", "a", timeout=PATIENCE).body == "answer"
        assert len(sent) == 2
        assert "copies" in sent[0]

    def test_a_decorator_above_the_listener_is_refused(self, jms_broker_url):
        adapter = ResourceAdapter(jms_broker_url)

        @adapter.listener("orders")
        def handler(body: str) -> None: ...

        with pytest.raises(ConfigurationError, match=r"below @adapter\.listener"):
            use_hooks(Hooks())(handler)

    def test_what_cannot_have_hooks_is_refused(self):
        with pytest.raises(ConfigurationError, match="cannot be added"):
            use_hooks(Hooks())([].append)
        with pytest.raises(ArgumentTypeError):
            use_hooks(Hooks)
