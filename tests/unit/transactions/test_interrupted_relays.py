"""Exceptions of signal handlers in a relay: the next run sends each message once, and another relay gets the leases."""

from contextlib import suppress
from pathlib import Path

import pytest
import sqlalchemy as sa

import jmsjca
from jmsjca import ConnectionFactory, Queue
from jmsjca.errors import ConnectionLostError
from jmsjca.transactions import Outbox, Relay
from tests.support.interruptions import Interruption, TimeLimitError, each_moment
from tests.unit.outbound.test_interrupted_calls import outcome
from tests.unit.providers.embedded.test_group_commit import PATIENCE, in_background

PACKAGE = Path(jmsjca.__file__).parent
PLACES = [str(PACKAGE / place) for place in ("transactions/relay.py", "outbound", "providers")]


@pytest.mark.parametrize("is_closed", [False, True])
def test_interrupted_run_of_a_relay_can_be_repeated(tmp_path, jms_broker_url, is_closed):
    """By the relay, or by another one once it is closed."""
    engine, metadata = sa.create_engine(f"sqlite:///{tmp_path}/rows.db"), sa.MetaData()
    outbox = Outbox(metadata, engine=engine)
    metadata.create_all(engine)
    factory = ConnectionFactory(jms_broker_url)

    def play(interruption: Interruption) -> None:
        relay = Relay(outbox, factory)
        relay.run_once()
        with engine.begin() as connection:
            for body in "ab":
                outbox.add(connection, "orders", body, key="a key")
        with interruption.planted(), suppress(ConnectionLostError):  # where the interruption is taken for a refusal
            outcome(relay.run_once)
        if is_closed:
            in_background(relay.close).result(PATIENCE)
            relay = Relay(outbox, factory)
        in_background(relay.run_once).result(PATIENCE)
        with receiving.create_session() as session, session.create_consumer(Queue("orders")) as consumer:
            assert [message.body for message in iter(lambda: consumer.receive(0), None)] == ["a", "b"]
        in_background(relay.close).result(PATIENCE)

    with factory.create_connection() as receiving:
        assert each_moment(play, TimeLimitError, *PLACES) > 100
    engine.dispose()
