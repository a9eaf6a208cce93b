"""Dependencies of handlers: functions and context managers whose values are parameters, for one call."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Annotated

import pytest

from jmsjca import Message, Outcome, Queue, ResourceAdapter, Session
from jmsjca.errors import ConfigurationError
from jmsjca.inbound import Depends, override_dependency
from jmsjca.testing.recorder import MessageRecorder
from tests.unit.inbound.listeners import Recorder

PATIENCE = 60


def price() -> int:
    return 7


class Basket:
    """A class with a dependency of its own."""

    def __init__(self, price: Annotated[int, Depends(price)], body: str) -> None:
        self.text = f"{body} for {price}"


@pytest.fixture
def answers(jms_adapter):
    """Return a function that sends a message to a handler and returns the answer's body."""

    def answer(handler, body="a pear"):
        jms_adapter.listener("questions", redelivery_handling="")(handler)
        return jms_adapter.request("questions", body, timeout=PATIENCE).body

    return answer


def test_a_parameter_gets_the_result_of_a_function(answers):
    def handler(body: str, price: Annotated[int, Depends(price)]) -> str:
        return f"{body}: {price}"

    assert answers(handler) == "a pear: 7"


def test_dependencies_have_the_parameters_of_handlers_and_dependencies(answers):
    def handler(basket: Annotated[Basket, Depends(Basket)]) -> str:
        return basket.text

    assert answers(handler) == "a pear for 7"


def test_the_session_of_a_dependency_is_that_of_the_delivery(answers, jms_connection_factory):
    class Notifier:
        def __init__(self, session: Session) -> None:
            self.session = session

    def handler(body: str, notifier: Annotated[Notifier, Depends(Notifier)], session: Session) -> str:
        assert notifier.session is session
        session.create_producer(Queue("notes")).send(body)
        return "done"

    assert answers(handler) == "done"
    with jms_connection_factory.create_connection() as connection, connection.create_session() as mine:
        assert mine.create_consumer(Queue("notes")).receive_body(str, timeout=PATIENCE) == "a pear"


def test_a_value_is_shared_by_the_parameters_of_a_call_unless_it_is_not_cached(answers):
    def handler(
        one: Annotated[object, Depends(object)],
        same: Annotated[object, Depends(object)],
        another: Annotated[object, Depends(object, use_cache=False)],
    ) -> str:
        return f"{one is same} {one is another}"

    assert answers(handler) == "True False"


@pytest.mark.parametrize("decorate", [contextmanager, lambda function: function], ids=["context manager", "generator"])
def test_what_it_yields_is_closed_after_the_handler_and_sees_its_error(decorate, answers):
    events: list[str] = []

    def connection() -> Iterator[str]:
        events.append("open")
        try:
            yield "connection"
        except OSError as error:
            events.append(f"rolled back: {error}")
            raise
        else:
            events.append("committed")

    def handler(it: Annotated[str, Depends(decorate(connection))], delivery_count: int) -> str:
        events.append(f"{it} {delivery_count}")
        if delivery_count == 1:
            raise OSError("the disk is full")
        return "done"

    assert answers(handler) == "done"
    assert events == [
        *("open", "connection 1", "rolled back: the disk is full"),
        *("open", "connection 2", "committed"),
    ]


def test_an_error_on_closing_rolls_the_delivery_back(answers):
    closed: list[int] = []

    def flaky(delivery_count: int) -> Iterator[None]:
        yield
        closed.append(delivery_count)
        if delivery_count == 1:
            raise OSError("cannot commit")

    def handler(_: Annotated[None, Depends(flaky)], delivery_count: int) -> str:
        return f"delivery {delivery_count}"

    assert answers(handler) == "delivery 2"
    assert closed == [1, 2]


def never(delivery_count: int) -> Iterator[int]:
    if delivery_count > 1:
        yield delivery_count


def twice(delivery_count: int) -> Iterator[int]:
    with suppress(OSError):
        yield delivery_count
    if delivery_count == 1:
        yield delivery_count


async def never_async(delivery_count: int) -> AsyncIterator[int]:
    for each in never(delivery_count):
        yield each


async def twice_async(delivery_count: int) -> AsyncIterator[int]:
    with suppress(OSError):
        yield delivery_count
    if delivery_count == 1:
        yield delivery_count


@pytest.mark.parametrize("failure", [None, OSError("the disk is full")], ids=["handled", "failed"])
@pytest.mark.parametrize(
    ("dependency", "complaint"),
    [
        (never, "The dependency never of the handler .*handler yields no value.*on each path"),
        (contextmanager(never), "The dependency never of the handler .*handler yields no value"),
        (never_async, "The dependency never_async of the handler .*handler yields no value"),
        (twice, "The dependency twice of the handler .*handler yields again.*exactly once"),
        (twice_async, "The dependency twice_async of the handler .*handler yields again"),
        (asynccontextmanager(twice_async), "The dependency twice_async of the handler .*handler yields again"),
    ],
    ids=["never", "decorated", "never, async", "twice", "twice, async", "decorated, async"],
)
def test_a_dependency_that_does_not_yield_once_is_named_with_the_remedy(
    dependency, complaint, failure, answers, caplog
):
    async def handler(count: Annotated[int, Depends(dependency)]) -> str:
        if failure and count == 1:
            raise failure
        return f"delivery {count}"

    assert answers(handler) == "delivery 2"
    [failed] = [record.getMessage() for record in caplog.records]
    assert re.search(complaint, failed)


def test_an_error_within_a_dependency_is_that_of_its_own_context_manager(answers, caplog):
    def connection(delivery_count: int) -> Iterator[int]:
        with contextmanager(never)(delivery_count) as count:
            yield count

    def handler(count: Annotated[int, Depends(connection)]) -> str:
        return f"delivery {count}"

    assert answers(handler) == "delivery 2"
    [failed] = [record.exc_info[1] for record in caplog.records]
    assert type(failed) is RuntimeError


@pytest.mark.parametrize("decorate", [asynccontextmanager, lambda function: function], ids=["decorated", "generator"])
def test_asynchronous_handlers_have_asynchronous_and_other_dependencies(decorate, answers):
    events: list[str] = []

    async def user() -> str:
        await asyncio.sleep(0)
        return "Ada"

    async def connection(user: Annotated[str, Depends(user)]) -> AsyncIterator[str]:
        await asyncio.sleep(0)
        yield f"connection of {user}"
        events.append("closed")

    async def handler(
        it: Annotated[str, Depends(decorate(connection))], price: Annotated[int, Depends(price)], body: str
    ) -> str:
        assert events == []
        await asyncio.sleep(0)
        return f"{it}, {price}, {body}"

    assert answers(handler) == "connection of Ada, 7, a pear"
    assert events == ["closed"]


def test_a_handler_of_whole_batches_has_one_value_for_the_batch(jms_adapter):
    recorder, opened = MessageRecorder(), []

    def database() -> Iterator[list[str]]:
        opened.append("open")
        yield opened

    @jms_adapter.listener("rows", concurrency_mode="sync", endpoint_pool_max_size=1, batch_size=5)
    def load(bodies: Sequence[str], database: Annotated[list[str], Depends(database)]) -> None:
        jms_adapter.send("loaded", f"{len(bodies)} with {len(database)}")

    jms_adapter.listener("loaded")(recorder)
    jms_adapter.send_many("rows", [str(number) for number in range(5)])
    recorder.wait_for(1)
    assert sum(int(body.split()[0]) for body in recorder.bodies) <= 5
    assert recorder.bodies[0].endswith("with 1")


def test_a_dependency_can_be_overridden_until_the_end_of_a_block(answers, jms_adapter):
    def handler(price: Annotated[int, Depends(price)]) -> str:
        return str(price)

    def free() -> Iterator[int]:
        yield 0

    with override_dependency(price, lambda: 1):
        with override_dependency(price, free):
            assert answers(handler) == "0"
        assert jms_adapter.request("questions", "?", timeout=PATIENCE).body == "1"
    assert jms_adapter.request("questions", "?", timeout=PATIENCE).body == "7"


def test_a_function_can_still_be_called_with_values_of_a_test():
    def handler(body: str, price: Annotated[int, Depends(price)]) -> str:
        return f"{body}: {price}"

    assert ResourceAdapter("embedded://x").listener("q")(handler)("a fig", 3) == "a fig: 3"


async def slow() -> int:
    return 1


def first(second: "Annotated[int, Depends(second)]") -> int:
    return second


def second(first: Annotated[int, Depends(first)]) -> int:
    return first


def unknown(what, _strange) -> None: ...


@pytest.mark.parametrize(
    ("dependency", "complaint"),
    [
        (slow, "cannot wait for its asynchronous dependency slow"),
        (second, "depend on each other: second -> first -> second"),
        (unknown, "needs '_strange'"),
        (3, "is not"),
    ],
)
def test_an_impossible_dependency_is_refused_when_the_listener_is_declared(dependency, complaint):
    def handler(message: Message, it: Annotated[object, Depends(dependency)]) -> None: ...

    with pytest.raises(ConfigurationError, match=complaint):
        ResourceAdapter("embedded://x").listener("q")(handler)


def test_a_handler_with_dependencies_may_return_its_settlement(jms_adapter):
    """As one without: waiting for it would wait for the handler itself."""
    recorder = Recorder()
    adapter = ResourceAdapter(jms_adapter.connection_url, hooks=[recorder])

    async def handler(message: Message, price: Annotated[int, Depends(price)]) -> object:
        return message.acknowledge()

    adapter.listener("questions")(handler)
    with adapter:
        adapter.send("questions", "a pear")
        recorder.await_outcome(Outcome.COMMITTED)
