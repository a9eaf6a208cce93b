"""Sessions of every mode against a small model of one queue, in any order of calls."""

import uuid
from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from jmsjca import AcknowledgeMode, ConnectionFactory, Limits, Message, TextMessage
from jmsjca.providers.embedded.store.store import drop_memory_store
from tests.unit.outbound.queues import QUEUE

TRANSACTED = "transacted"
EXPLICIT = {AcknowledgeMode.CLIENT, AcknowledgeMode.INDIVIDUAL}
MODES = [TRANSACTED, *AcknowledgeMode]


@dataclass
class Letter:
    """A message as the model has it."""

    number: int
    deliveries: int = 0


class Sessions(RuleBasedStateMachine):
    """One session with one consumer, both of which come and go."""

    mode: object

    def __init__(self):
        super().__init__()
        self.name = uuid.uuid4().hex
        self.sent = 0
        self.ready: list[Letter] = []
        self.ahead = 0  # so many of the first ones are taken ahead
        self.pending: list[tuple[Letter, Message]] = []

    @initialize(prefetch=st.integers(1, 4))
    def connect(self, prefetch):
        self.prefetch = prefetch
        factory = ConnectionFactory(f"embedded://{self.name}", limits=Limits(prefetch_messages=prefetch))
        self.connection = factory.create_connection()
        self.connection.start()
        self.sender = self.connection.create_session()
        self.open_session()

    def open_session(self):
        transacted = self.mode == TRANSACTED
        acknowledge_mode = AcknowledgeMode.AUTO if transacted else self.mode
        self.session = self.connection.create_session(transacted, acknowledge_mode)
        self.consumer = self.session.create_consumer(QUEUE)

    @rule(count=st.integers(1, 5))
    def send(self, count):
        for _ in range(count):
            self.sender.create_producer(QUEUE).send(TextMessage(str(self.sent)))
            self.ready.append(Letter(self.sent))
            self.sent += 1

    @rule()
    def receive(self):
        message = self.consumer.receive(0)
        if not self.ahead:
            self.ahead = min(self.prefetch, len(self.ready))
            if self.mode is AcknowledgeMode.DUPS_OK:
                self.pending.clear()
        if not self.ahead:
            assert message is None
            return
        self.ahead -= 1
        letter = self.ready.pop(0)
        letter.deliveries += 1
        expected = (str(letter.number), letter.deliveries, letter.deliveries > 1)
        assert (message.body, message.delivery_count, message.redelivered) == expected
        if self.mode is not AcknowledgeMode.AUTO:
            self.pending.append((letter, message))

    @precondition(lambda self: self.mode in EXPLICIT and self.pending)
    @rule(data=st.data())
    def acknowledge(self, data):
        position = data.draw(st.integers(0, len(self.pending) - 1))
        self.pending[position][1].acknowledge()
        if self.mode is AcknowledgeMode.CLIENT:
            self.pending.clear()
        else:
            self.pending.pop(position)

    @precondition(lambda self: self.mode in EXPLICIT)
    @rule()
    def acknowledge_all(self):
        self.session.acknowledge()
        self.pending.clear()

    @precondition(lambda self: self.mode == TRANSACTED)
    @rule()
    def commit(self):
        self.session.commit()
        self.pending.clear()

    @rule()
    def come_again(self):
        self.session.rollback() if self.mode == TRANSACTED else self.session.recover()
        self.give_back()

    @rule()
    def change_consumer(self):
        self.consumer.close()
        self.consumer = self.session.create_consumer(QUEUE)
        self.ahead = 0

    @rule()
    def change_session(self):
        self.session.close()
        if self.mode is AcknowledgeMode.DUPS_OK:
            self.pending.clear()
        self.give_back()
        self.ahead = 0
        self.open_session()

    def give_back(self):
        if self.pending:
            self.ahead = 0
        self.ready = sorted([*self.ready, *(letter for letter, _ in self.pending)], key=lambda letter: letter.number)
        self.pending.clear()

    def teardown(self):
        self.connection.close()
        with ConnectionFactory(f"embedded://{self.name}").create_connection() as connection:
            depth = connection.admin.depth(QUEUE)
        drop_memory_store(self.name)
        unacknowledged = [] if self.mode is AcknowledgeMode.DUPS_OK else self.pending
        assert (depth.ready, depth.held) == (len(self.ready) + len(unacknowledged), 0)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_session_behaves_as_the_model(mode):
    machine = type("Machine", (Sessions,), {"mode": mode})
    run_state_machine_as_test(machine, settings=settings(max_examples=30, stateful_step_count=40))
