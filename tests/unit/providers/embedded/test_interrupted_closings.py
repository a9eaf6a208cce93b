"""Exceptions of signal handlers while a connection is closed or opened: a further close leaves nothing of it behind."""

from contextlib import suppress
from pathlib import Path

import pytest

import jmsjca
from jmsjca import Queue, TextMessage
from jmsjca.errors import TransactionInDoubtError
from jmsjca.providers.embedded.connection import EmbeddedConnection
from jmsjca.reconnection import ConnectionSettings, connect
from tests.support.interruptions import Interruption, TimeLimitError, each_moment
from tests.unit.providers.embedded.test_group_commit import PATIENCE, in_background

EMBEDDED = str(Path(jmsjca.__file__).parent / "providers" / "embedded")
QUEUE = Queue("orders")
CLIENT = "the client"


def opened(url: str, client_id: str | None = None) -> EmbeddedConnection:
    return connect(ConnectionSettings(url, client_id=client_id))  # type: ignore[return-value]  # an embedded URL


def send(url: str, *bodies: str) -> None:
    connection = opened(url)
    unit = connection.unit()
    for body in bodies:
        unit.send(TextMessage(body), QUEUE)
    unit.commit()
    connection.close()


def holding(url: str, client_id: str) -> EmbeddedConnection:
    """A connection that holds a message in a unit, and one in none."""
    connection = opened(url, client_id)
    deliveries = connection.consumer(QUEUE).receive(2, 0)
    assert len(deliveries) == len("ab")
    connection.unit().take(deliveries[:1])
    return connection


def take_two(url: str, client_id: str | None) -> set[object]:
    """Wait for two messages, and take them, with a connection that has the client id."""
    connection = opened(url, client_id)
    consumer, unit = connection.consumer(QUEUE), connection.unit()
    deliveries = [delivery for _ in "ab" for delivery in consumer.receive(1, PATIENCE)]
    unit.take(deliveries)
    unit.commit()
    connection.close()
    return {delivery.message.body for delivery in deliveries}


@pytest.fixture(params=["file", "memory"])
def url(request, broker_file, jms_broker_url) -> str:
    return f"embedded://{broker_file}" if request.param == "file" else jms_broker_url


def is_in_use(broker_file: Path) -> bool:
    """Return True if the next connection finds that this process has the file open, or has left that behind."""
    opened(f"embedded://{broker_file}").close()
    return any(Path(f"{broker_file}-owners").iterdir())


def test_interrupted_close_of_the_last_connection_ends_the_use_of_the_file(tmp_path):
    def play(interruption: Interruption) -> None:
        broker_file = tmp_path / f"{interruption.left}.db"
        url = f"embedded://{broker_file}"
        send(url, "a", "b")
        connection = holding(url, CLIENT)
        with suppress(TimeLimitError, TransactionInDoubtError), interruption.planted():
            connection.close()
        in_background(connection.close).result(PATIENCE)
        assert not is_in_use(broker_file)
        assert take_two(url, CLIENT) == {"a", "b"}

    assert each_moment(play, TimeLimitError, EMBEDDED) > 100


def test_interrupted_close_beside_another_connection_releases_what_it_held(url):
    """The other one keeps the store open. The client id is not free if the interruption left the commit in doubt."""
    other = opened(url)

    def play(interruption: Interruption) -> None:
        client_id = f"client {interruption.left}"
        send(url, "a", "b")
        connection = holding(url, client_id)
        in_doubt = False
        try:
            with suppress(TimeLimitError), interruption.planted():
                connection.close()
        except TransactionInDoubtError:
            in_doubt = True
        in_background(connection.close).result(PATIENCE)
        assert take_two(url, None if in_doubt else client_id) == {"a", "b"}

    assert each_moment(play, TimeLimitError, EMBEDDED) > 100
    other.close()


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the garbage collector closes sockets that nobody has had yet
@pytest.mark.parametrize("client_id", [None, CLIENT])
def test_interrupted_opening_ends_the_use_of_the_file(tmp_path, client_id: str | None):
    def play(interruption: Interruption) -> None:
        broker_file = tmp_path / f"{interruption.left}.db"
        with suppress(TimeLimitError, TransactionInDoubtError):
            with interruption.planted():
                connection = opened(f"embedded://{broker_file}", client_id)
            connection.close()
        assert not is_in_use(broker_file)

    assert each_moment(play, TimeLimitError, EMBEDDED) > 100
