"""The recorder and the clock that the pytest plugin offers."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Event

import pytest

from jmsjca import Queue, Reject, TextMessage
from jmsjca.errors import InvalidArgumentError
from jmsjca.testing.recorder import MessageRecorder

AN_HOUR = 3600


@pytest.fixture
def memory(jms_broker_url):
    if not jms_broker_url.startswith("embedded://") or "/" in jms_broker_url.removeprefix("embedded://"):
        pytest.skip("other processes may send to this broker")


class TestRecorder:
    def test_it_waits_for_messages(self, jms_adapter, jms_recorder):
        jms_adapter.listener("orders")(jms_recorder)
        jms_adapter.send_many("orders", ["a", "b"])
        assert [message.body for message in jms_recorder.wait_for(2)] == ["a", "b"]
        jms_recorder.assert_received("b", "a")

    def test_a_missing_message_is_an_assertion_that_shows_the_others(self, jms_adapter, jms_recorder):
        jms_adapter.listener("orders")(jms_recorder)
        jms_adapter.send("orders", "a")
        jms_recorder.wait_for(1)
        with pytest.raises(AssertionError, match=r"\['b'\] was not received within 0.01 s; received: \['a'\]"):
            jms_recorder.assert_received("a", "b", timeout=0.01)
        with pytest.raises(AssertionError, match="2 messages"):
            jms_recorder.wait_for(2, timeout=0.01)
        with pytest.raises(AssertionError, match="2 calls"):
            jms_recorder.wait_for_calls(2, timeout=0.01)

    @pytest.mark.usefixtures("memory")
    def test_a_wait_ends_when_nothing_can_come(self, jms_adapter, jms_recorder):
        @jms_adapter.listener("orders")
        def on_order(body: str) -> None:
            jms_adapter.send("invoices", f"invoice for {body}")

        jms_adapter.listener("invoices")(jms_recorder)
        jms_adapter.send("orders", "a pear")
        jms_adapter.send("nobody", "listens here")
        for wait in (
            lambda: jms_recorder.assert_received("invoice for a fig", timeout=AN_HOUR),
            lambda: jms_recorder.wait_for(2, timeout=AN_HOUR),
            lambda: jms_recorder.wait_for_calls(2, timeout=AN_HOUR),
        ):
            with pytest.raises(AssertionError, match="all listeners are idle"):
                wait()
        assert jms_recorder.bodies == ["invoice for a pear"]

    @pytest.mark.usefixtures("memory")
    def test_a_wait_goes_on_for_a_delayed_message_and_a_slow_handler(self, jms_adapter, jms_recorder):
        @jms_adapter.listener("orders")
        def on_order(body: str) -> None:
            Event().wait(1.5)
            jms_adapter.send("invoices", body, delivery_delay=1.5)

        jms_adapter.listener("invoices")(jms_recorder)
        jms_adapter.send("orders", "a pear")
        jms_recorder.assert_received("a pear")

    def test_each_body_counts_as_often_as_it_is_expected(self):
        recorder = MessageRecorder()
        recorder(TextMessage("a"))
        with pytest.raises(AssertionError):
            recorder.assert_received("a", "a", timeout=0)

    def test_deliveries_fail_when_a_test_says_so(self, jms_adapter, jms_recorder):
        jms_adapter.listener("orders")(jms_recorder)
        jms_recorder.fail_next(2)
        jms_adapter.send("orders", "a")
        jms_recorder.assert_received("a")
        calls = jms_recorder.wait_for_calls(3)
        assert [call.error is None for call in calls] == [False, False, True]
        assert calls[2].message.redelivered

    def test_an_error_of_the_test(self, jms_adapter, jms_recorder):
        dead = MessageRecorder()
        jms_adapter.listener("orders", redelivery_handling="3:move(queue:dead)")(jms_recorder)
        jms_adapter.listener("dead")(dead)
        jms_recorder.fail_next(error=Reject("no such fruit"))
        jms_adapter.send("orders", "a stone")
        dead.assert_received("a stone")
        assert jms_recorder.messages == []

    def test_reset_forgets_calls_and_failures(self):
        recorder = MessageRecorder()
        recorder.fail_next(5)
        with pytest.raises(RuntimeError):
            recorder(TextMessage("a"))
        recorder.reset()
        recorder(TextMessage("b"))
        assert recorder.bodies == ["b"]
        with pytest.raises(InvalidArgumentError):
            recorder.fail_next(0)


class TestClock:
    def test_a_delay_of_an_hour_is_over_at_once(self, jms_clock, jms_adapter, jms_recorder):
        jms_adapter.listener("orders")(jms_recorder)
        jms_adapter.send("orders", "later", delivery_delay=AN_HOUR)
        jms_adapter.send("orders", "now")
        jms_recorder.assert_received("now")
        assert jms_recorder.bodies == ["now"]
        jms_clock.advance(timedelta(hours=1))
        jms_recorder.assert_received("later")

    def test_a_message_expires(self, jms_clock, jms_adapter, jms_connection_factory):
        jms_adapter.send("orders", "short", time_to_live=AN_HOUR)
        jms_adapter.send("orders", "long", time_to_live=3 * AN_HOUR)
        jms_clock.advance(2 * AN_HOUR)
        with jms_connection_factory.create_connection() as connection:
            consumer = connection.create_session().create_consumer(Queue("orders"))
            assert consumer.receive(timeout=30).body == "long"

    def test_a_receive_times_out(self, jms_clock, jms_connection_factory):
        with jms_connection_factory.create_connection() as connection, ThreadPoolExecutor(1) as thread:
            consumer = connection.create_session().create_consumer(Queue("orders"))
            receiving = thread.submit(consumer.receive, timeout=AN_HOUR)
            while not receiving.done():  # the thread may not have begun to wait
                jms_clock.advance(AN_HOUR)
            assert receiving.result() is None

    @pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
    def test_a_delayed_redelivery_is_due(self, jms_clock, jms_adapter, jms_recorder, mode):
        jms_adapter.listener("orders", concurrency_mode=mode, redelivery_handling="1:3600000")(jms_recorder)
        jms_recorder.fail_next()
        jms_adapter.send("orders", "a")
        jms_clock.advance_until(lambda: jms_recorder.bodies == ["a"], step=AN_HOUR)

    def test_an_acknowledgement_timeout_is_due(self, jms_clock, jms_adapter, jms_recorder):
        jms_adapter.listener("orders", concurrency_mode="sync", hold_until_ack=True, acknowledgement_timeout=AN_HOUR)(
            jms_recorder
        )
        jms_adapter.send("orders", "a")
        jms_clock.advance_until(lambda: len(jms_recorder.messages) > 1, step=AN_HOUR)
        assert jms_recorder.messages[1].redelivered

    def test_a_condition_that_never_holds_is_an_assertion(self, jms_clock):
        with pytest.raises(AssertionError, match=r"0\.01 s of real time"):
            jms_clock.advance_until(lambda: False, step=1, timeout=0.01)

    def test_a_coroutine_advances_until_a_redelivery(self, jms_clock, jms_stopped_adapter, jms_recorder):
        jms_stopped_adapter.listener("orders", redelivery_handling="1:3600000")(jms_recorder)
        jms_recorder.fail_next()

        async def scenario():
            async with jms_stopped_adapter as adapter:
                await adapter.send_async("orders", "a")
                await jms_clock.advance_until_async(lambda: jms_recorder.bodies == ["a"], step=AN_HOUR)
                with pytest.raises(AssertionError, match="does not hold"):
                    await jms_clock.advance_until_async(lambda: False, step=1, timeout=0.01)

        asyncio.run(scenario())

    def test_the_time_goes_forward_only(self, jms_clock):
        before = datetime.now(UTC)
        jms_clock.advance(AN_HOUR)
        assert timedelta(hours=1) <= jms_clock.now - before < timedelta(hours=2)
        for wrong in (-1, float("nan"), float("inf")):
            with pytest.raises(InvalidArgumentError):
                jms_clock.advance(wrong)
