"""A relay of an outbox, killed at each of its steps, over an embedded broker."""

import os
import random
import signal
from contextlib import contextmanager

import sqlalchemy as sa

from jmsjca import ConnectionFactory
from jmsjca.transactions import Outbox, Relay
from tests.unit.transactions.test_outbox import LEASE, Clock, add, texts

SAMPLE = 2
BODIES = ["a1", "b1", "a2", "c1", "b2", "a3"]


class Steps:
    """Records the kinds of the steps of a relay, and kills the process at the n-th one."""

    def __init__(self, last):
        self.last = last
        self.kinds = []

    def __call__(self, kind):
        self.kinds.append(kind)
        if len(self.kinds) == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


class SteppingFactory:
    """A connection factory whose connections count each send and each commit, before and after it."""

    def __init__(self, factory, step):
        self._factory, self._step = factory, step

    def create_connection(self):
        self._step("connect")
        connection = self._factory.create_connection()
        create_session = connection.create_session

        @contextmanager
        def stepping(*arguments, **options):
            with create_session(*arguments, **options) as session:
                create_producer, commit = session.create_producer, session.commit
                yield SteppingSession(session, create_producer, commit, self._step)

        return SteppingConnection(connection, stepping)


class SteppingConnection:
    def __init__(self, connection, create_session):
        self.capabilities, self.create_session, self.close = connection.capabilities, create_session, connection.close


class SteppingSession:
    def __init__(self, session, create_producer, commit, step):
        self._create_producer, self._commit, self._step = create_producer, commit, step

    def create_producer(self, to):
        producer = self._create_producer(to)

        class Stepping:
            def send(_, message, **options):  # noqa: N805
                self._step("before a send")
                producer.send(message, **options)
                self._step("after a send")

        return Stepping()

    def commit(self):
        self._step("before the broker's commit")
        self._commit()
        self._step("after the broker's commit")


def relay_in_child(folder, last):
    """Run a relay in a forked child that dies at a step; 0 for none. Return how it ended."""
    child = os.fork()
    if child == 0:
        try:
            step = Steps(last)
            engine = sa.create_engine(f"sqlite:///{folder}/application.db")
            sa.event.listen(engine, "before_cursor_execute", lambda *call: step(call[2].split()[0]))
            sa.event.listen(engine, "commit", lambda connection: step("before a commit"))
            outbox = Outbox(sa.MetaData(), engine=engine)
            factory = SteppingFactory(ConnectionFactory(f"embedded://{folder}/broker.db"), step)
            relay = Relay(outbox, factory, clock=Clock(), batch_size=4)
            while relay.run_once():
                pass
            (folder / "steps").write_text("\n".join(step.kinds))
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def outcome_of_a_kill(folder, last):
    """Kill a relay at a step, let another one finish, and return the bodies that arrived."""
    folder.mkdir()
    engine = sa.create_engine(f"sqlite:///{folder}/application.db")
    metadata = sa.MetaData()
    outbox = Outbox(metadata, engine=engine)
    metadata.create_all(engine)
    for body in BODIES:
        add(engine, outbox, body, key=body[0])
    engine.dispose()
    assert relay_in_child(folder, last) == (-signal.SIGKILL if last else 0)
    clock = Clock()
    clock.now += 2 * LEASE
    factory = ConnectionFactory(f"embedded://{folder}/broker.db")
    relay = Relay(outbox, factory, clock=clock)
    while relay.run_once():
        pass
    assert relay.get_stats().depth == 0
    relay.close()
    with factory.create_connection() as connection:
        arrived = texts(connection)
    engine.dispose()
    return arrived


def test_a_relay_killed_at_any_step_loses_nothing_and_doubles_nothing(tmp_path, capsys):
    """A seeded sample of the steps; all of them with JMSJCA_ALL_STEPS=1."""
    assert sorted(outcome_of_a_kill(tmp_path / "whole", 0)) == sorted(BODIES)
    kinds = (tmp_path / "whole" / "steps").read_text().splitlines()
    steps = [*enumerate(kinds, 1)]
    # The first and the last step of each kind, and some others.
    chosen = {*{kind: n for n, kind in steps}.values(), *{kind: n for n, kind in reversed(steps)}.values()}
    chosen |= set(random.Random(20).sample(range(1, len(kinds) + 1), SAMPLE))
    visited = range(1, len(kinds) + 1) if os.environ.get("JMSJCA_ALL_STEPS") else sorted(chosen)
    for last in visited:
        arrived = outcome_of_a_kill(tmp_path / f"{last}", last)
        for key in "abc":
            assert [body for body in arrived if body[0] == key] == [body for body in BODIES if body[0] == key], last
    with capsys.disabled():
        print(f"\nkills of a relay: {len(visited)} of {len(kinds)} steps visited")
