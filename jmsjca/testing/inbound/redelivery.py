"""Cases for redelivered messages, and for the decisions of handlers, `Reject` and `Retry`."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from jmsjca import BytesMessage, MapMessage, Message, ObjectMessage, Outcome, Session, StreamMessage, TextMessage
from jmsjca.destinations import Destination, Topic
from jmsjca.errors import Reject, Retry
from jmsjca.messages import Int, Long
from jmsjca.testing.contract.harness import PATIENCE, moment
from jmsjca.testing.inbound.harness import HandlerFailed, ListenerContract, ListenerHarness, forward

__all__ = [
    "TestExpiringMessages",
    "TestMovedMessages",
    "TestRedelivered",
    "TestRedeliveryActions",
    "TestRejected",
    "TestRetried",
]

modes = pytest.mark.parametrize("mode", ["serial", "sync", "cc"])


@modes
class TestRedelivered(ListenerContract):
    """Redelivered messages (JMSJCA manual, message wrapping and redelivery handling)."""

    def test_counts_and_data_are_found_again(self, stage: ListenerHarness, mode: str) -> None:
        """Under the names of the manual and as attributes; also what the handler raised before."""
        seen: list[tuple[object, ...]] = []

        def _handler(message: Message) -> None:
            data = message.get_string_property("JMS_Sun_JMSJCA_UserRollbackData.tries")
            error = message.get_string_property("JMS_Sun_JMSJCA_ExceptionMessage")
            count = message.get_object_property("JMS_Sun_JMSJCA_RedeliveryCount")
            seen.append((message.redelivered, count, data, error))
            message.user_rollback_data["tries"] = f"{data or ''}x"
            if len(seen) < 4:
                raise HandlerFailed(f"try {len(seen)}")

        stage.send("a")
        stage.listen(_handler, concurrency_mode=mode)
        stage.heard.await_outcome(Outcome.COMMITTED)
        assert seen == [
            (False, 0, None, None),
            (True, 1, "x", "try 1"),
            (True, 2, "xx", "try 2"),
            (True, 3, "xxx", "try 3"),
        ]

    def test_rolled_back_by_the_property(self, stage: ListenerHarness, mode: str) -> None:
        """Setting `JMSJCA.setRollbackOnly` rolls back, although the handler returns normally."""
        seen: list[bool] = []

        def _handler(message: Message) -> None:
            seen.append(message.redelivered)
            if not message.redelivered:
                message.set_boolean_property("JMSJCA.setRollbackOnly", True)

        stage.send("a")
        stage.listen(_handler, concurrency_mode=mode)
        stage.heard.await_retry(mode)
        assert seen == [False, True]

    def test_what_is_sent_on_is_found_again(self, stage: ListenerHarness, mode: str) -> None:
        """A forwarded message gets another id; its failure is still recorded for the received delivery."""
        stage.harness.require("atomic")

        def _handler(message: Message, session: Session) -> None:
            session.create_producer(stage.never).send(message)
            message.user_rollback_data["seen"] = f"{message.user_rollback_data.get('seen', '')}x"
            raise HandlerFailed("no such order")

        stage.send("a")
        stage.listen(_handler, concurrency_mode=mode, redelivery_handling=f"2:move(queue:{stage.out.name})")
        [delivery] = stage.harness.gather(stage.harness.connection.consumer(stage.out), 1)
        told = delivery.message.properties
        assert told["JMS_Sun_JMSJCA_UserRollbackData.seen"] == "xx"
        assert told["JMS_Sun_JMSJCA_ExceptionMessage"] == "no such order"

    def test_another_handling_is_for_one_message(self, stage: ListenerHarness, mode: str) -> None:
        """The others keep the listener's handling. An index that has passed already applies the next time."""
        handling = f"3:move(queue:{stage.never.name})"

        def _handler(message: Message) -> None:
            if message.body == "a":
                assert message.redelivery_handling in (handling, changed)
                message.redelivery_handling = changed
                raise HandlerFailed
            if message.redelivery_count < 2:
                raise HandlerFailed

        changed = f"1:move(queue:{stage.out.name})"
        stage.send(*"ab")
        stage.listen(_handler, concurrency_mode=mode, redelivery_handling=handling)
        assert stage.arrive(stage.out, 1) == ["a"]
        stage.heard.await_outcome(Outcome.COMMITTED)
        stage.adapter.stop()
        for place in (stage.source, stage.out, stage.never):
            stage.expect_remaining(place)

    def test_moved_without_telling_anything(self, stage: ListenerHarness, mode: str) -> None:
        """The option redeliveryredirect sends the message on as it is."""
        spec = {"redelivery_handling": f"1:move(queue:{stage.out.name})", "concurrency_mode": mode}
        stage.send("a", correlation_id="corr", type="letter")
        stage.listen(Message.set_rollback_only, options={"JMSJCA.redeliveryredirect": "true"}, **spec)
        [delivery] = stage.harness.gather(stage.harness.connection.consumer(stage.out), 1)
        message = delivery.message
        assert (message.body, message.correlation_id, message.type) == ("a", "corr", "letter")
        assert not [name for name in message.properties if name.startswith("JMS_Sun_JMSJCA_")]

    def test_moved_with_what_the_headers_say(self, stage: ListenerHarness, mode: str) -> None:
        """Correlation id, reply-to, type, priority and delivery mode are copied from the message."""
        spec = {"redelivery_handling": f"1:move(queue:{stage.out.name})", "concurrency_mode": mode}
        headers = {"correlation_id": "corr", "type": "letter", "reply_to": stage.ends, "priority": 7}
        stage.send("a", **headers)
        stage.listen(Message.set_rollback_only, **spec)
        [delivery] = stage.harness.gather(stage.harness.connection.consumer(stage.out), 1)
        assert {name: getattr(delivery.message, name) for name in headers} == headers


class TestRedeliveryActions(ListenerContract):
    """Moved and deleted messages (JMSJCA manual, redelivery handling)."""

    def test_deleted_when_it_comes_again(self, stage: ListenerHarness) -> None:
        """The handler sees it once (JMSJCA: testDlqDelete)."""
        calls: list[str] = []

        def _handler(message: Message) -> None:
            calls.append(message.body)
            if message.body != "last":
                message.set_rollback_only()

        stage.send("a", "last")
        stage.listen(_handler, redelivery_handling="1:delete")
        stage.heard.await_outcome(Outcome.COMMITTED)
        stage.adapter.stop()
        assert calls == ["a", "last"]
        stage.expect_remaining(stage.source)

    @pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
    def test_stop_does_not_wait_for_delays(self, stage: ListenerHarness, mode: str) -> None:
        """Nothing is lost by it, either (JMSJCA: testDlqUndeploy)."""
        stage.many = 100
        bodies = stage.send_many()
        stage.listen(Message.set_rollback_only, concurrency_mode=mode, redelivery_handling="5:2147483647")
        stage.heard.await_outcome(Outcome.ROLLED_BACK, 5 if mode == "serial" else 500)
        if mode == "serial":
            _wait_until_held(stage)
        stage.adapter.stop()
        stage.expect_count(stage.source, len(bodies))

    def test_moved_when_they_fail_for_the_second_time(self, stage: ListenerHarness) -> None:
        """All of them (JMSJCA: testDlqXA)."""
        handling = f"2:move(queue:{stage.out.name})"
        stage.listen(Message.set_rollback_only, concurrency_mode="sync", redelivery_handling=handling)
        stage.many = 150
        stage.forward_many()

    def test_another_handling_and_data_outlive_a_stop_by_the_handler(self, stage: ListenerHarness) -> None:
        """They are the message's own (JMSJCA: testChangeActionsInMidFlight)."""

        def _handler(message: Message) -> None:
            message.set_string_property("_JMSJCA_UserRollbackData1", "x")
            message.set_string_property("_JMSJCA_RedeliveryHandling", f"1:move(queue:{stage.out.name})")
            message.set_string_property("_JMSJCA_StopMessageDelivery", "Some reason")
            raise HandlerFailed

        activation = stage.listen(_handler)
        stage.send("a")
        stage.heard.await_status("Down")
        stage.expect_remaining(stage.out)
        activation.start()
        [delivery] = stage.harness.gather(stage.harness.connection.consumer(stage.out), 1)
        assert delivery.message.properties["_JMSJCA_UserRollbackData1"] == "x"


_MESSAGES: dict[str, Callable[[], Message]] = {
    "text": lambda: TextMessage("body"),
    "bytes": lambda: BytesMessage(b"body"),
    "map": lambda: MapMessage({"key": "value"}),
    "stream": lambda: StreamMessage(["one", Int(2)]),
    "object": lambda: ObjectMessage(["anything"]),
}
_PROPERTIES: dict[str, str | int] = {"s1": "S1", "int1": Int(2), "long1": Long(3)}
kinds = pytest.mark.parametrize("kind", _MESSAGES)


class FailingHandler:
    """A handler that records what it saw on each message, has the message moved to a topic, and fails.

    Args:
        error: The exception to raise; None to roll back without one.
    """

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.original = Message()

    def __call__(self, message: Message) -> None:
        """Record the state of the message, change its redelivery handling, and fail."""
        self.original = message
        message.set_string_property("_JMSJCA_UserRollbackData1", "x")
        message.set_string_property("_JMSJCA_UserRollbackData2", "y")
        seen, count = (
            message.get_object_property(f"_JMSJCA_{name}") for name in ("UserRollbackDatact", "RedeliveryCount")
        )
        message.set_string_property("_JMSJCA_UserRollbackDatact", f"{seen},{count}" if seen else str(count))
        handling = message.get_string_property("_JMSJCA_RedeliveryHandling") or ""
        message.set_string_property("_JMSJCA_RedeliveryHandling", handling.replace("queue", "topic"))
        if self.error is not None:
            raise self.error
        message.set_rollback_only()


@kinds
class TestMovedMessages(ListenerContract):
    """A copy says what the message said, where it was, and why it is moved (JMSJCA manual, redelivery handling)."""

    def test_serial_and_configured_in_the_url(self, stage: ListenerHarness, kind: str) -> None:
        """JMSJCA: testDlqMoveSerialXA."""
        topic, handler = stage.harness.topic(), FailingHandler()
        url = stage.url_with(f"JMSJCA.redeliveryhandling=4:1;5:move(topic:{topic.name})")
        copy = self._moved(stage, topic, kind, handler, connection_url=url)
        self._check(stage, copy, handler.original)
        assert not [name for name in copy.get_property_names() if "Exception" in name]

    def test_concurrent_and_configured_in_the_spec(self, stage: ListenerHarness, kind: str) -> None:
        """JMSJCA: testDlqMoveCCXA."""
        topic, handler = stage.harness.topic(), FailingHandler()
        handling = f"4:1;5:move(topic:{topic.name})"
        copy = self._moved(stage, topic, kind, handler, concurrency_mode="cc", redelivery_handling=handling)
        self._check(stage, copy, handler.original)
        assert not [name for name in copy.get_property_names() if "Exception" in name]

    def test_serial_with_an_exception_and_no_transaction(self, stage: ListenerHarness, kind: str) -> None:
        """JMSJCA: testDlqMoveSerialBMT."""
        topic, handler = stage.harness.topic(), FailingHandler(HandlerFailed("too bad"))
        url = stage.url_with(f"JMSJCA.redeliveryhandling=4:1;5:move(queue:{topic.name})")
        copy = self._moved(stage, topic, kind, handler, connection_url=url, transaction="none")
        self._check(stage, copy, handler.original)
        self._check_exception(copy)

    def test_concurrent_with_an_exception_and_no_transaction(self, stage: ListenerHarness, kind: str) -> None:
        """JMSJCA: testDlqMoveCCBMT."""
        topic, handler = stage.harness.topic(), FailingHandler(HandlerFailed("too bad"))
        spec = {"redelivery_handling": f"4:1;5:move(queue:{topic.name})", "transaction": "none"}
        copy = self._moved(stage, topic, kind, handler, concurrency_mode="cc", **spec)
        self._check(stage, copy, handler.original)
        self._check_exception(copy)

    def _moved(self, stage: ListenerHarness, topic: Topic, kind: str, handler: FailingHandler, **spec: Any) -> Message:
        if kind in ("map", "stream", "object"):
            stage.harness.require("structured")
        subscriber = stage.harness.connection.consumer(topic)
        message = _MESSAGES[kind]()
        message.properties.update(_PROPERTIES)
        stage.harness.send_messages(stage.source, message, correlation_id="corr")
        stage.listen(handler, context_name="the context", **spec)
        [delivery] = stage.harness.gather(subscriber, 1)
        stage.adapter.stop()
        stage.expect_remaining(stage.source)
        return delivery.message

    def _check(self, stage: ListenerHarness, copy: Message, original: Message) -> None:
        assert type(copy) is type(original)
        assert _content(copy) == _content(original)
        assert original.timestamp is not None
        told = {
            "RedeliveryCount": 5,
            "OriginalDestinationName": stage.source.name,
            "OriginalDestinationType": "javax.jms.Queue",
            "OriginalTimestamp": round(original.timestamp.timestamp() * 1000),
            "OriginalJMSMessageID": original.message_id,
            "OriginalJMSCorrelationID": "corr",
            "ContextName": "the context",
            "UserRollbackData1": "x",
            "UserRollbackData2": "y",
            "UserRollbackDatact": "0,1,2,3,4",
        }
        for prefix in ("_JMSJCA_", "JMS_Sun_JMSJCA_"):
            assert {name: copy.properties.get(prefix + name) for name in told} == told
        assert {name: copy.properties.get(name) for name in _PROPERTIES} == _PROPERTIES

    def _check_exception(self, copy: Message) -> None:
        for prefix in ("_JMSJCA_Exception", "JMS_Sun_JMSJCA_Exception"):
            assert str(copy.properties[prefix + "Class"]).endswith("Failed")
            assert copy.properties[prefix + "Message"] == "too bad"
            assert "raise self.error" in str(copy.properties[prefix + "StackTrace"])


def _content(message: Message) -> object:
    return message.pickled if isinstance(message, ObjectMessage) else message.body


def _wait_until_held(stage: ListenerHarness) -> None:
    """Wait until the listener has received a redelivery, which it delays; where the broker reports held messages."""
    connection, pause = stage.harness.connection, threading.Event()
    admin = connection.admin() if connection.capabilities.counts_held else None
    while admin is not None and not admin.depth(stage.source).held:
        pause.wait(0.01)


concurrent_modes = pytest.mark.parametrize("mode", ["sync", "cc"])


class Deciding:
    """A handler that counts its calls by body, and raises for some bodies.

    Args:
        errors: The errors to raise, by body.

    Attributes:
        calls: The number of calls by body.
    """

    def __init__(self, **errors: Exception) -> None:
        self._errors = errors
        self._lock = threading.Lock()
        self.calls: Counter[str | None] = Counter()

    def __call__(self, message: Message) -> None:
        """Count, and raise."""
        with self._lock:
            self.calls[message.body] += 1
        if message.body in self._errors:
            raise self._errors[message.body]


class TestRejected(ListenerContract):
    """A message that its handler rejects."""

    @modes
    def test_goes_to_the_dead_letter_queue_at_once_with_its_reason(self, stage: ListenerHarness, mode: str) -> None:
        """The handler sees it once; the messages before and behind it are consumed as always."""
        handler = Deciding(bad=Reject("no such article"))
        stage.send("a", "bad", "b")
        stage.listen(handler, concurrency_mode=mode, redelivery_handling=f"9:move(queue:{stage.out.name})")
        letter = self._dead_letter(stage, stage.out)
        stage.heard.await_outcome(Outcome.COMMITTED, 3)
        assert letter.body == "bad"
        told = {name: letter.properties[f"JMS_Sun_JMSJCA_{name}"] for name in ("ExceptionClass", "ExceptionMessage")}
        assert told == {"ExceptionClass": "jmsjca.errors.Reject", "ExceptionMessage": "no such article"}
        assert letter.properties["JMS_Sun_JMSJCA_OriginalDestinationName"] == stage.source.name
        stage.adapter.stop()
        assert handler.calls == {"a": 1, "bad": 1, "b": 1}
        stage.expect_remaining(stage.source)

    @modes
    def test_is_deleted_where_no_dead_letter_queue_is_configured(
        self, stage: ListenerHarness, mode: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A warning names the message and the reason."""
        handler = Deciding(bad=Reject("no such article"))
        stage.send("bad", "b")
        stage.listen(handler, concurrency_mode=mode)
        stage.heard.await_outcome(Outcome.COMMITTED, 2)
        stage.adapter.stop()
        assert handler.calls == {"bad": 1, "b": 1}
        stage.expect_remaining(stage.source)
        [warning] = [record.getMessage() for record in caplog.records if "no such article" in record.getMessage()]
        assert "deleted" in warning
        assert stage.source.name in warning

    @modes
    def test_takes_back_what_its_handler_has_sent(self, stage: ListenerHarness, mode: str) -> None:
        """It is dead-lettered, although its unit is rolled back, and its handler does not see it again."""
        stage.harness.require("atomic")
        calls: list[str] = []

        def _handler(message: Message, session: Session) -> None:
            calls.append(message.body)
            forward(message, session, stage.never)
            raise Reject("no such article")

        stage.send("bad")
        stage.listen(_handler, concurrency_mode=mode, redelivery_handling=f"9:move(queue:{stage.out.name})")
        assert self._dead_letter(stage, stage.out).body == "bad"
        stage.adapter.stop()
        assert calls == ["bad"]
        for place in (stage.source, stage.never):
            stage.expect_remaining(place)

    @concurrent_modes
    def test_leaves_the_rest_of_its_batch_alone(self, stage: ListenerHarness, mode: str) -> None:
        """The others are consumed in the same unit, once."""
        handler = Deciding(bad=Reject("no such article"))
        stage.send("a", "bad", "b")
        spec: dict[str, Any] = {"redelivery_handling": f"9:move(queue:{stage.out.name})", "endpoint_pool_max_size": 1}
        stage.listen(handler, concurrency_mode=mode, batch_size=3, **spec)
        assert self._dead_letter(stage, stage.out).body == "bad"
        stage.heard.await_outcome(Outcome.COMMITTED, 3)
        stage.adapter.stop()
        assert {body: handler.calls[body] for body in ("a", "bad", "b")} == {"a": 1, "bad": 1, "b": 1}
        stage.expect_remaining(stage.source)

    def test_is_the_whole_batch_if_the_handler_takes_it_whole(self, stage: ListenerHarness) -> None:
        """The cause in the batch is unknown."""

        def _handler(messages: Sequence[Message]) -> None:
            raise Reject(f"{len(messages) > 0}")

        stage.send("a", "b")
        spec: dict[str, Any] = {"redelivery_handling": f"9:move(queue:{stage.out.name})", "batch_size": 2}
        stage.listen(_handler, concurrency_mode="sync", **spec)
        assert sorted(stage.arrive(stage.out, 2)) == ["a", "b"]
        stage.adapter.stop()
        stage.expect_remaining(stage.source)

    @concurrent_modes
    def test_needs_no_acknowledgement(self, stage: ListenerHarness, mode: str) -> None:
        """It goes at once, also with held acknowledgement."""
        handler = Deciding(bad=Reject("no such article"))
        stage.send("bad")
        spec: dict[str, Any] = {"redelivery_handling": f"9:move(queue:{stage.out.name})", "hold_until_ack": True}
        stage.listen(handler, concurrency_mode=mode, **spec)
        assert self._dead_letter(stage, stage.out).body == "bad"
        stage.adapter.stop()
        assert handler.calls == {"bad": 1}
        stage.expect_remaining(stage.source)

    def test_by_a_coroutine(self, stage: ListenerHarness) -> None:
        """As by any handler."""

        async def _handler(message: Message) -> None:
            raise Reject(f"no such article as {message.body}")

        stage.send("bad")
        stage.listen(_handler, concurrency_mode="cc", redelivery_handling=f"9:move(queue:{stage.out.name})")
        reason = self._dead_letter(stage, stage.out).properties["JMS_Sun_JMSJCA_ExceptionMessage"]
        assert reason == "no such article as bad"
        stage.adapter.stop()
        stage.expect_remaining(stage.source)

    def test_by_a_handler_without_a_transaction(self, stage: ListenerHarness) -> None:
        """The copy is sent before the message is acknowledged, or both at once."""
        handler = Deciding(bad=Reject("no such article"))
        stage.send("bad")
        stage.listen(handler, transaction="none", redelivery_handling=f"9:move(queue:{stage.out.name})")
        assert self._dead_letter(stage, stage.out).body == "bad"
        stage.adapter.stop()
        assert handler.calls == {"bad": 1}
        stage.expect_remaining(stage.source)

    def _dead_letter(self, stage: ListenerHarness, place: Destination) -> Message:
        connection = stage.harness.connect()
        [delivery] = stage.harness.gather(connection.consumer(place), 1)
        message = delivery.message
        stage.harness.settle([delivery], connection)
        connection.close()
        return message


class TestExpiringMessages(ListenerContract):
    """Dead letters never expire; the expiration of the message is a property of its copy."""

    @modes
    @pytest.mark.parametrize("redirect", [False, True], ids=["copied", "redirected"])
    def test_a_moved_copy_never_expires(self, stage: ListenerHarness, mode: str, redirect: bool) -> None:
        """Neither one with the record of the failure nor one without."""
        expiration = moment(3600)
        stage.send("a", expiration=expiration)
        spec = {"redelivery_handling": f"1:move(queue:{stage.out.name})", "concurrency_mode": mode}
        stage.listen(Message.set_rollback_only, options={"JMSJCA.redeliveryredirect": str(redirect).lower()}, **spec)
        self._expect(stage, expiration)

    @pytest.mark.parametrize(
        "spec",
        [
            *({"concurrency_mode": mode} for mode in ("serial", "sync", "cc")),
            *({"concurrency_mode": mode, "batch_size": 2} for mode in ("sync", "cc")),
            {"concurrency_mode": "cc", "hold_until_ack": True},
            {"transaction": "none"},
        ],
        ids=lambda spec: "-".join(map(str, spec.values())),
    )
    def test_a_message_that_expires_in_its_handler_is_dead_lettered(
        self, stage: ListenerHarness, spec: dict[str, Any]
    ) -> None:
        """The copy is there, although the time of the message is over when it is sent."""
        called, expirations, life = threading.Event(), list[datetime](), 1.0

        def _handler(message: Message) -> None:
            if message.expiration is None:  # the end of the batch
                return
            expirations.append(message.expiration)
            called.set()
            while datetime.now(UTC) <= message.expiration:
                time.sleep(0.01)
            raise Reject("too late")

        stage.listen(_handler, redelivery_handling=f"9:move(queue:{stage.out.name})", **spec)
        while not called.is_set():  # on a slow machine a message may expire before it is delivered
            stage.send("a", expiration=moment(life))
            life *= 2
            called.wait(life)
        self._expect(stage, expirations[0])

    def _expect(self, stage: ListenerHarness, expiration: datetime) -> None:
        connection = stage.harness.connect()
        [delivery] = stage.harness.gather(connection.consumer(stage.out), 1)
        copy = delivery.message
        assert copy.expiration is None
        assert copy.get_long_property("_JMSJCA_OriginalExpiration") == round(expiration.timestamp() * 1000)
        connection.close()


class TestRetried(ListenerContract):
    """A message that its handler wants again later."""

    @modes
    def test_comes_again_after_the_delay_and_counts(self, stage: ListenerHarness, mode: str) -> None:
        """The delay replaces the delay of the redelivery handling. The redelivery is counted like any other."""
        seen: list[tuple[float, int]] = []

        def _handler(message: Message) -> None:
            seen.append((time.monotonic(), message.redelivery_count))
            if len(seen) == 1:
                raise Retry("the shop is closed", delay=0.3)

        stage.send("a")
        stage.listen(_handler, concurrency_mode=mode, redelivery_handling="1:60000")
        stage.heard.await_outcome(Outcome.COMMITTED)
        assert [count for _, count in seen] == [0, 1]
        assert seen[1][0] - seen[0][0] >= 0.3
        stage.adapter.stop()
        stage.expect_remaining(stage.source)

    @modes
    def test_without_a_delay_comes_again_as_the_redelivery_handling_says(
        self, stage: ListenerHarness, mode: str
    ) -> None:
        """It is moved in the end: a handler that always asks for another time does not get the message for ever."""
        handler = Deciding(a=Retry("the shop is closed"))
        stage.send("a")
        stage.listen(handler, concurrency_mode=mode, redelivery_handling=f"2:move(queue:{stage.out.name})")
        assert stage.arrive(stage.out, 1) == ["a"]
        stage.adapter.stop()
        assert handler.calls == {"a": 2}
        stage.expect_remaining(stage.source)

    @concurrent_modes
    def test_while_others_go_on(self, stage: ListenerHarness, mode: str) -> None:
        """A delay occupies no thread, so the following messages are consumed during the delay."""
        done = threading.Event()

        def _handler(message: Message) -> None:
            if message.body == "later" and not done.is_set():
                raise Retry(delay=0.2)
            if message.body == "b":
                done.set()

        stage.send("later", "b")
        stage.listen(_handler, concurrency_mode=mode, endpoint_pool_max_size=1)
        assert done.wait(PATIENCE)
        stage.heard.await_outcome(Outcome.COMMITTED, 2)
        stage.adapter.stop()
        stage.expect_remaining(stage.source)
