"""Fixtures of the tests of sessions: each test runs on a memory broker and on a file broker."""

import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from transaction import TransactionManager  # type: ignore[import-untyped]  # it has no annotations

from jmsjca import Connection, ConnectionFactory, JMSContext, MessageConsumer, Queue, TextMessage
from jmsjca.destinations import Destination
from jmsjca.errors import InvalidDestinationError
from jmsjca.outbound.connection_state import ConnectionState
from jmsjca.providers.embedded.connection import EmbeddedConnection
from jmsjca.providers.embedded.consumer import EmbeddedConsumer
from jmsjca.providers.embedded.store.store import drop_memory_store
from tests.unit.outbound.managed_sessions import IN, OUT
from tests.unit.outbound.queues import PATIENCE


@pytest.fixture(params=["memory", "file"])
def jms_broker_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "file":
        yield f"embedded://{tmp_path}/broker.db"
        return
    name = f"test-{uuid.uuid4().hex}"
    yield f"embedded://{name}"
    drop_memory_store(name)


@pytest.fixture
def other(jms_connection_factory: ConnectionFactory) -> Iterator[Connection]:
    """A second connection to the same broker, started."""
    with jms_connection_factory.create_connection() as connection:
        yield connection


@pytest.fixture
def client(jms_broker_url: str) -> Iterator[Connection]:
    """A started connection with a client id."""
    with ConnectionFactory(jms_broker_url, client_id="me").create_connection() as connection:
        yield connection


@pytest.fixture
def context(jms_connection_factory: ConnectionFactory) -> Iterator[JMSContext]:
    with jms_connection_factory.create_context() as context:
        yield context


@pytest.fixture
def lacking(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes the broker of later connections one that lacks a capability."""
    make = EmbeddedConnection.__init__

    def weaken(capability: str) -> None:
        def weaker(self: EmbeddedConnection, store: Any, limits: Any, capabilities: Any, *ids: Any) -> None:
            make(self, store, limits, replace(capabilities, **{capability: False}), *ids)

        monkeypatch.setattr(EmbeddedConnection, "__init__", weaker)

    return weaken


class Call:
    """A call on a thread of its own."""

    def __init__(self, function: Callable[[], Any], name: str) -> None:
        self._function = function
        self._outcome: list[Any] = []
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def result(self) -> Any:
        """What it returned, or raises what it raised."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "The call did not return."
        (outcome,) = self._outcome
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def ended(self, seconds: float = 0.05) -> bool:
        """Whether it returned, given some time: for what must not return yet."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._outcome.append(self._function())
        except BaseException as error:  # noqa: BLE001  # whoever asks for the result gets it
            self._outcome.append(error)


@pytest.fixture
def in_thread() -> Callable[..., Call]:
    """Starts a call on a thread of its own."""

    def start(function: Callable[[], Any], name: str = "another") -> Call:
        return Call(function, name)

    return start


@pytest.fixture
def receiving(monkeypatch: pytest.MonkeyPatch, in_thread: Callable[..., Call]) -> Callable[..., Call]:
    """Starts a receive, or a call that receives, on a thread named "receiver".

    Returns when that asks the broker, or waits for the start.
    """
    entered = threading.Event()

    def noting(real: Callable[..., Any]) -> Callable[..., Any]:
        def entering(*args: Any) -> Any:
            if threading.current_thread().name == "receiver":
                entered.set()
            return real(*args)

        return entering

    monkeypatch.setattr(EmbeddedConsumer, "receive", noting(EmbeddedConsumer.receive))

    def start(
        receives: MessageConsumer | Callable[[], Any], timeout: float | None = None, *, stopped: bool = False
    ) -> Call:
        if stopped:
            monkeypatch.setattr(ConnectionState, "wait", noting(ConnectionState.wait))
        call = in_thread(receives if callable(receives) else lambda: receives.receive(timeout), "receiver")
        assert entered.wait(PATIENCE)
        entered.clear()
        return call

    return start


@pytest.fixture
def manager() -> Any:
    """A transaction manager in explicit mode: in no transaction before ``begin()``."""
    return TransactionManager(explicit=True)


@pytest.fixture
def managed(jms_broker_url: str, manager: Any) -> Callable[..., ConnectionFactory]:
    """Makes a factory under the transaction manager."""

    def make(options: str = "") -> ConnectionFactory:
        return ConnectionFactory(jms_broker_url, options=options, transaction_locator=lambda: manager)

    return make


@pytest.fixture
def put(jms_connection_factory: ConnectionFactory) -> Callable[..., None]:
    """Sends texts to a queue, as another client."""

    def put(*bodies: str) -> None:
        with jms_connection_factory.create_connection() as connection:
            producer = connection.create_session().create_producer(IN)
            for body in bodies:
                producer.send(TextMessage(body))

    return put


@pytest.fixture
def bodies(jms_connection_factory: ConnectionFactory) -> Callable[..., list[Any]]:
    """Reads the bodies of the messages in a queue, as another client sees them."""

    def read(queue: Queue = OUT) -> list[Any]:
        with jms_connection_factory.create_connection() as connection:
            return [message.body for message in connection.create_session().create_browser(queue)]

    return read


@pytest.fixture
def exists(jms_connection_factory: ConnectionFactory) -> Callable[[Destination], bool]:
    """Tells whether a temporary destination is there: another client can send to it."""

    def check(temporary: Destination) -> bool:
        with jms_connection_factory.create_connection() as connection:
            try:
                connection.create_session().create_producer(temporary).send(TextMessage("is it there?"))
            except InvalidDestinationError:
                return False
            return True

    return check
