"""Handlers that receive a whole batch in one call."""

import queue
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from poisoning import poison_embedded
from pydantic import BaseModel

from jmsjca import BytesMessage, Message, Outcome, Queue, ResourceAdapter, Session, TextMessage
from jmsjca.errors import ConfigurationError
from jmsjca.inbound.handler import Handler
from jmsjca.inbound.handler_arguments import Invocation
from tests.unit.inbound.listeners import PATIENCE, send, waiting

MESSAGES = [TextMessage('{"item": "tea"}'), TextMessage('{"item": "rice"}')]
SESSION = object.__new__(Session)


class Order(BaseModel):
    item: str


@dataclass
class Item:
    item: str


ORDERS, ITEMS = [Order(item="tea"), Order(item="rice")], [Item("tea"), Item("rice")]


def by_type(batch: Sequence[Message]):
    return batch


def of_one_kind(batch: Sequence[TextMessage]):
    return batch


def of_several_kinds(batch: Sequence[TextMessage | BytesMessage]):
    return batch


def as_list(batch: list[Message]):
    return batch


def of_anything(batch: Sequence[Any]):
    return batch


def by_name(messages):
    return messages


def with_default(batch: Sequence[Message] = ()):
    return batch


def as_models(orders: Sequence[Order]):
    return orders


def as_dataclasses(items: Sequence[Item]):
    return items


def as_texts(texts: Sequence[str]):
    return texts


def with_messages_and_session(orders: Sequence[Order], messages, session):
    return (orders, messages, session)


@pytest.mark.parametrize(
    ("function", "given"),
    [
        *[(f, MESSAGES) for f in (by_type, of_one_kind, of_several_kinds, as_list, of_anything, by_name, with_default)],
        (as_models, ORDERS),
        (as_dataclasses, ITEMS),
        (as_texts, ['{"item": "tea"}', '{"item": "rice"}']),
        (with_messages_and_session, (ORDERS, MESSAGES, SESSION)),
    ],
)
def test_what_is_given(function, given):
    handler = Handler(function)
    assert handler.whole_batches
    assert not handler.takes_end_of_batch
    assert handler(Invocation(MESSAGES, lambda: SESSION)) == given


def test_a_list_of_anything_but_messages_is_one_body():
    def handler(numbers: list[int]) -> list[int]:
        return numbers

    assert not Handler(handler).whole_batches
    assert Handler(handler)(Invocation(TextMessage("[1, 2]"), lambda: SESSION)) == [1, 2]


@pytest.mark.parametrize(
    "function",
    [
        lambda messages, message: None,
        lambda messages, headers: None,
        lambda messages, priority: None,
        lambda messages, body: None,
        lambda messages, anything: None,
    ],
)
def test_nothing_of_one_message_beside_it(function):
    with pytest.raises(ConfigurationError):
        Handler(function)


class Batches:
    """A handler that keeps the batches it got, and fails at first."""

    def __init__(self, *failures: Exception) -> None:
        self.got: queue.Queue[Sequence[Message]] = queue.Queue()
        self.failures = list(failures)

    def __call__(self, batch: Sequence[Message]) -> None:
        self.got.put(batch)
        if self.failures:
            raise self.failures.pop()

    def take(self) -> list[str]:
        return [message.body for message in self.got.get(timeout=PATIENCE)]


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
def test_without_batches_the_sequence_has_one_element(adapter, mode):
    batches = Batches()
    adapter.listener("q", concurrency_mode=mode, endpoint_pool_max_size=1)(batches)
    send(adapter, "a", "b")
    with adapter:
        assert [batches.take(), batches.take()] == [["a"], ["b"]]
    assert adapter.activations[0].stats.n_messages == 2


@pytest.mark.parametrize("mode", ["sync", "cc"])
def test_one_call_and_one_unit_for_a_batch(adapter, recorder, mode):
    batches = Batches(KeyError("first"))
    adapter.listener("q", concurrency_mode=mode, endpoint_pool_max_size=1, batch_size=3)(batches)
    send(adapter, *"abc")
    with adapter:
        for outcome in (Outcome.ROLLED_BACK, Outcome.COMMITTED):
            batch = batches.got.get(timeout=PATIENCE)
            assert [(m.body, m.batch_index, m.batch_size) for m in batch] == [("a", 0, 3), ("b", 1, 3), ("c", 2, 3)]
            assert recorder.outcomes.get(timeout=PATIENCE) == (outcome, 3)
    assert {m.get_string_property("_JMSJCA_ExceptionClass") for m in batch} == {"KeyError"}
    stats = adapter.activations[0].stats
    assert (stats.n_messages, stats.n_delivered_messages) == (2, 6)
    assert batches.got.empty()


def test_a_body_that_does_not_fit_fails_the_batch(adapter, recorder):
    orders: queue.Queue[Sequence[Order]] = queue.Queue()

    @adapter.listener(
        "q", concurrency_mode="sync", endpoint_pool_max_size=1, batch_size=3, redelivery_handling="1:delete"
    )
    def handler(batch: Sequence[Order]) -> None:
        orders.put(batch)

    send(adapter, '{"item": "tea"}', '{"item": 5}')
    with adapter:
        assert recorder.outcomes.get(timeout=PATIENCE) == (Outcome.ROLLED_BACK, 2)
    assert orders.empty()


@pytest.mark.parametrize("mode", ["sync", "cc"])
def test_what_cannot_be_decoded_loses_nothing(adapter, recorder, jms_broker_url, mode):
    """One of the batch is poison: all come again, and the good ones by themselves are handled."""
    batches = Batches()
    adapter.listener(
        "q",
        concurrency_mode=mode,
        endpoint_pool_max_size=1,
        batch_size=3,
        redelivery_handling="2:delete",
        split_failed_batches=True,
    )(batches)
    send(adapter, "a")
    poison_embedded(jms_broker_url, Queue("q"))
    send(adapter, "b")
    with adapter:
        assert recorder.outcomes.get(timeout=PATIENCE) == (Outcome.ROLLED_BACK, 3)
        assert sorted([*batches.take(), *batches.take()]) == ["a", "b"]


@pytest.mark.parametrize("mode", ["sync", "cc"])
def test_held_messages_are_acknowledged_one_by_one(adapter, recorder, mode):
    batches = Batches()
    adapter.listener("q", concurrency_mode=mode, endpoint_pool_max_size=1, batch_size=3, hold_until_ack=True)(batches)
    send(adapter, *"abc")
    with adapter:
        first, *rest = batches.got.get(timeout=PATIENCE)
        settlement = first.acknowledge()
        assert settlement.wait(0) is None
        for message in rest:
            message.acknowledge()
        assert settlement.wait(PATIENCE) is Outcome.COMMITTED
        assert recorder.outcomes.get(timeout=PATIENCE) == (Outcome.COMMITTED, 3)


def ask(adapter: ResourceAdapter, *bodies: str) -> None:
    """Send requests; those of small letters want no reply."""
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(Queue("q"))
        for body in bodies:
            producer.send(TextMessage(body, reply_to=Queue("replies") if body.isupper() else None))


@pytest.mark.parametrize(
    ("result", "replies"),
    [
        (["1", None, "3"], ["1", "3"]),
        (("1", "2", "3"), ["1", "2", "3"]),
        (None, []),
    ],
)
def test_a_reply_for_each_message(adapter, recorder, result, replies):
    adapter.listener("q", concurrency_mode="sync", batch_size=3, endpoint_pool_max_size=1)(lambda messages: result)
    ask(adapter, *"ABC")
    with adapter:
        assert recorder.outcomes.get(timeout=PATIENCE) == (Outcome.COMMITTED, 3)
        assert [body for body, _ in waiting(adapter, "replies")] == replies


def test_only_who_asked_gets_a_reply(adapter, recorder):
    adapter.listener("q", concurrency_mode="sync", batch_size=3, endpoint_pool_max_size=1)(
        lambda messages: ["1", "2", "3"]
    )
    ask(adapter, *"aBc")
    with adapter:
        assert recorder.outcomes.get(timeout=PATIENCE) == (Outcome.COMMITTED, 3)
        assert [body for body, _ in waiting(adapter, "replies")] == ["2"]


@pytest.mark.parametrize("result", [["1"], "abc", 3, {"a": 1}])
@pytest.mark.parametrize(("bodies", "outcome"), [("ABC", Outcome.ROLLED_BACK), ("abc", Outcome.COMMITTED)])
def test_without_a_reply_for_each_message_those_who_asked_are_not_left_alone(
    adapter, recorder, result, bodies, outcome
):
    adapter.listener("q", concurrency_mode="sync", batch_size=3, endpoint_pool_max_size=1)(lambda messages: result)
    ask(adapter, *bodies)
    with adapter:
        assert recorder.outcomes.get(timeout=PATIENCE) == (outcome, 3)
