"""Records of handlers' calls, deliveries that fail, and the wait for idle listeners."""

import asyncio
import pickle

import pytest

from jmsjca import Message, Queue, Reject, TextMessage
from jmsjca.errors import ActivationFailedError, InvalidArgumentError, NotSupportedError
from jmsjca.testing.idle import wait_until_idle, wait_until_idle_async


def confirm(body: str) -> str:
    return f"confirmed: {body}"


class TestCalls:
    def test_a_call_is_recorded_with_its_result(self, jms_adapter, jms_calls):
        jms_adapter.listener("orders")(confirm)
        jms_adapter.send("orders", "a pear")
        call = jms_calls.assert_called_once_with("orders", "a pear")
        assert (call.destination, call.body, call.result, call.error) == ("orders", "a pear", "confirmed: a pear", None)
        assert jms_calls.of(Queue("orders")) == jms_calls.calls == [call]

    def test_an_error_of_the_handler_is_recorded(self, jms_adapter, jms_calls):
        @jms_adapter.listener("orders", redelivery_handling="1:move(queue:dead)")
        def fail(body: str) -> None:
            raise ValueError(body)

        jms_adapter.send("orders", "a stone")
        assert isinstance(jms_calls.wait_for("orders")[0].error, ValueError)

    def test_calls_of_async_handlers_and_waits_of_coroutines(self, jms_stopped_adapter, jms_calls, jms_recorder):
        @jms_stopped_adapter.listener("orders")
        async def confirm(body: str) -> None:
            await jms_stopped_adapter.send_async("confirmations", f"confirmed: {body}")

        jms_stopped_adapter.listener("confirmations")(jms_recorder)

        async def scenario():
            async with jms_stopped_adapter as adapter:
                await adapter.send_async("orders", "a pear")
                assert (await jms_calls.wait_for_async("orders"))[0].body == "a pear"
                await jms_recorder.assert_received_async("confirmed: a pear")
                await wait_until_idle_async(adapter)
                assert len(await jms_recorder.wait_for_async(1)) == 1
                assert (await jms_recorder.wait_for_calls_async(1))[0].error is None
                assert (await jms_calls.assert_called_once_with_async("orders", "a pear")).error is None

        asyncio.run(scenario())

    def test_a_failed_wait_of_a_coroutine_is_an_assertion(self, jms_stopped_adapter, jms_calls, jms_recorder):
        async def scenario():
            waits = [
                jms_calls.wait_for_async("orders", timeout=0.01),
                jms_calls.assert_called_once_with_async("orders", "a pear", timeout=0.01),
                jms_recorder.wait_for_async(1, timeout=0.01),
                jms_recorder.wait_for_calls_async(1, timeout=0.01),
                jms_recorder.assert_received_async("a pear", timeout=0.01),
            ]
            return await asyncio.gather(*waits, return_exceptions=True)

        assert [type(each) for each in asyncio.run(scenario())] == [AssertionError] * 5

    def test_a_missing_call_is_an_assertion_that_shows_the_others(self, jms_adapter, jms_calls):
        jms_adapter.listener("orders")(confirm)
        jms_adapter.send("orders", "a pear")
        jms_calls.wait_for("orders")
        with pytest.raises(AssertionError, match="orders: 'a pear'"):
            jms_calls.wait_for("orders", 2, timeout=0.01)
        with pytest.raises(AssertionError, match=r"'a fig' is expected.*'a pear'"):
            jms_calls.assert_called_once_with("orders", "a fig")
        with pytest.raises(AssertionError, match="No call"):
            jms_calls.assert_not_called("orders")
        jms_calls.assert_not_called("elsewhere")
        jms_calls.reset()
        jms_calls.assert_not_called("orders")

    def test_a_second_call_is_one_too_many(self, jms_adapter, jms_calls):
        jms_adapter.listener("orders")(confirm)
        jms_adapter.send_many("orders", ["a pear", "a pear"])
        jms_calls.wait_for("orders", 2)
        with pytest.raises(AssertionError, match="One call"):
            jms_calls.assert_called_once_with("orders", "a pear")

    def test_it_does_not_travel_with_a_factory(self, jms_adapter):
        factory = pickle.loads(pickle.dumps(jms_adapter.connection_factory()))  # noqa: S301  # our own
        factory.create_connection().close()

    def test_a_message_without_destination(self, jms_calls):
        jms_calls.around_delivery("x", TextMessage("a"), lambda: None)
        assert jms_calls.of("")[0].body == "a"


class TestFailures:
    def test_the_next_deliveries_fail(self, jms_adapter, jms_calls):
        jms_adapter.listener("orders")(confirm)
        jms_calls.fail_next(2)
        jms_adapter.send("orders", "a pear")
        calls = jms_calls.wait_for("orders", 3)
        assert [call.error is None for call in calls] == [False, False, True]
        assert calls[2].message.redelivered

    def test_deliveries_of_one_destination_fail_with_an_error_of_the_test(self, jms_adapter, jms_calls):
        jms_adapter.listener("orders", redelivery_handling="3:move(queue:dead)")(confirm)
        jms_adapter.listener("others")(confirm)
        jms_adapter.listener("dead")(confirm)
        jms_calls.fail_next(error=Reject("no such fruit"), destination="orders")
        jms_adapter.send("others", "a fig")
        assert jms_calls.wait_for("others")[0].error is None
        jms_adapter.send("orders", "a stone")
        jms_calls.assert_called_once_with("dead", "a stone")

    def test_a_number_below_one_is_refused(self, jms_calls):
        with pytest.raises(InvalidArgumentError):
            jms_calls.fail_next(0)


class TestIdle:
    @pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
    def test_messages_of_messages_are_waited_for(self, jms_adapter, jms_calls, jms_wait_until_idle, mode):
        @jms_adapter.listener("down", concurrency_mode=mode)
        def count_down(message: Message) -> None:
            if number := int(message.body):
                jms_adapter.send("down", str(number - 1))

        jms_adapter.send_many("down", ["20"] * 5)
        jms_wait_until_idle()
        assert len(jms_calls.of("down")) == 5 * 21

    def test_what_is_left_is_named(self, jms_adapter, jms_wait_until_idle):
        jms_adapter.listener("orders", redelivery_handling="1:3600000")(_fail)
        jms_adapter.send("orders", "a stone")
        with pytest.raises(AssertionError, match=r"orders.*1 units are in flight"):
            jms_wait_until_idle(timeout=0.01)

    def test_a_message_that_is_delayed_by_its_sender_is_not_waited_for(self, jms_adapter, jms_wait_until_idle):
        jms_adapter.listener("orders")(confirm)
        jms_adapter.send("orders", "later", delivery_delay=3600)
        jms_wait_until_idle()

    def test_an_adapter_without_listeners_is_idle(self, jms_wait_until_idle, jms_stopped_adapter):
        jms_wait_until_idle(timeout=0)
        wait_until_idle(jms_stopped_adapter, timeout=0)

    def test_listeners_of_topics_are_idle_without_active_handlers(self, jms_adapter, jms_wait_until_idle):
        jms_adapter.listener("news", destination_type="topic")(confirm)
        jms_wait_until_idle()

    @pytest.mark.parametrize("kind", ["queue", "topic"])
    def test_a_listener_that_stopped_permanently_is_not_idle(self, jms_adapter, jms_wait_until_idle, kind):
        jms_adapter.listener("news", destination_type=kind, connection_url="embedded://host:1")(confirm)
        with pytest.raises(ActivationFailedError):
            jms_adapter.start(wait=60)
        with pytest.raises(AssertionError, match=r"news.* has stopped permanently: .* names a port"):
            jms_wait_until_idle()

    def test_a_broker_that_does_not_count_is_refused(self, jms_adapter, jms_wait_until_idle, monkeypatch):
        from dataclasses import replace

        from jmsjca.providers.embedded.connection import EmbeddedConnection

        begin = EmbeddedConnection.__init__

        def uncounting(self, store, limits, capabilities, *identifiers):
            begin(self, store, limits, replace(capabilities, counts_held=False), *identifiers)

        jms_adapter.listener("orders")(confirm)
        monkeypatch.setattr(EmbeddedConnection, "__init__", uncounting)
        with pytest.raises(NotSupportedError, match="counts_held"):
            jms_wait_until_idle()


def _fail(message: Message) -> None:
    raise ValueError(message.body)
