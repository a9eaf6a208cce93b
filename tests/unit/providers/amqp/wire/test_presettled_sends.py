"""Messages sent settled in a transaction."""

import threading

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import SENDER, Attach, Discharge, Error, Transactional, Transfer

from jmsjca.destinations import Queue
from jmsjca.errors import TransactionRolledBackError
from jmsjca.messages import TextMessage
from jmsjca.providers.amqp.links.link_pool import MAX_SENDER_LINKS
from tests.unit.providers.amqp.wire.cut_account import body_of, encoded

BROKER_J = "Apache Qpid Broker-J Core"
FULL = Error(condition="amqp:resource-limit-exceeded", description="full")


class Sends:
    """A broker that notes the messages that come, and a connection to it."""

    def __init__(self, stage, product=BROKER_J, offers=()):
        self.transfers = []
        self.ending = None  # which message ends its link instead, and how
        self.broker = Broker(product, offers=offers)
        self.broker.instead[Transfer] = self._note
        self.connection = stage(self.broker).connect()

    def unit(self, bodies, *, atomic=True):
        unit = self.connection.unit(atomic=atomic)
        for body in bodies:
            unit.send(TextMessage(body), Queue("out"))
        return unit

    def settled(self):
        return [bool(transfer.settled) for transfer in self.transfers]

    def bodies(self, queue="out"):
        return [body_of(kept.payload) for kept in self.broker.store.queues[queue]]

    def _note(self, service, frame):
        if not frame.body.more:
            self.transfers.append(frame.body)
        if self.ending and len(self.transfers) == self.ending[0]:
            getattr(service, self.ending[1])(frame, FULL)
        else:
            service.carry_out(frame)


@pytest.fixture
def sends(stage):
    return Sends(stage)


def test_only_the_last_is_answered(sends):
    sends.unit("abcde").commit()
    assert sends.settled() == [True] * 4 + [False]
    assert all(isinstance(transfer.state, Transactional) for transfer in sends.transfers)
    assert sends.bodies() == list("abcde")


@pytest.mark.parametrize(
    ("count", "size", "answered"),
    [(100, 1, [99]), (101, 1, [99, 100]), (250, 1, [99, 199, 249]), (5, 400_000, [1, 3, 4]), (3, 1_200_000, [0, 1, 2])],
)
def test_one_of_each_run_is_answered(sends, count, size, answered):
    """Or the time for one answer would be that for all of a large unit."""
    sends.unit(["x" * size] * count).commit()
    assert [number for number, settled in enumerate(sends.settled()) if not settled] == answered
    assert len(sends.bodies()) == count


@pytest.mark.parametrize("product", ["apache-activemq-artemis", "ActiveMQ", "one that nobody tested"])
def test_other_brokers_answer_each(stage, product):
    """They may commit without what they did not take, or nobody knows whether they do."""
    sends = Sends(stage, product)
    assert sends.connection.capabilities.atomic
    sends.unit("abc").commit()
    assert sends.settled() == [False] * 3


def test_each_is_answered_outside_transactions(sends):
    sends.unit("abc", atomic=False).commit()
    assert sends.settled() == [False] * 3


def test_one_of_each_destination_is_answered(sends):
    unit = sends.unit("ab")
    unit.send(TextMessage("c"), Queue("other"))
    unit.send(TextMessage("d"), Queue("other"))
    unit.commit()
    assert sorted(sends.settled()) == [False, False, True, True]
    assert (sends.bodies(), sends.bodies("other")) == (["a", "b"], ["c", "d"])


def test_a_relay_that_ends_over_a_settled_message_rolls_all_back(stage):
    """The second destination's first message ends it."""
    sends = Sends(stage, offers=("ANONYMOUS-RELAY",))
    unit = sends.connection.unit()
    for number in range(MAX_SENDER_LINKS):
        unit.send(TextMessage("first"), Queue(f"q{number}"))
    unit.commit()
    sends.transfers.clear()
    sends.ending = 3, "detach"
    unit = sends.unit("ab")
    for body in "cd":
        unit.send(TextMessage(body), Queue("other"))
    with pytest.raises(TransactionRolledBackError, match="full"):
        unit.commit()
    assert sends.settled() == [True, False, True, False]
    assert (sends.bodies(), sends.bodies("other")) == ([], [])


def test_one_of_what_credit_allows_is_answered(sends):
    """The broker gives credit for two, and for the others when these are there."""

    def hold(service, frame):
        if frame.body.role == SENDER and getattr(frame.body.target, "address", None) == "out":
            held.append(service.attach(frame))
            service.tell_credit(held[0], 2)
        else:
            service.carry_out(frame)

    def note(service, frame):
        sends.transfers.append(frame.body)
        service.carry_out(frame)
        if len(sends.transfers) == 2:
            service.tell_credit(held[0], 10)

    held = []
    sends.broker.instead.update({Attach: hold, Transfer: note})
    sends.unit("abcde").commit()
    assert sends.settled() == [True, False, True, True, False]
    assert sends.bodies() == list("abcde")


@pytest.mark.parametrize("how", ["detach", "end"])
@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_link_that_ends_over_a_settled_message_rolls_all_back(sends, how, place):
    """It ends, and what comes after that over it is answered by nobody: so is the last."""
    sends.broker.store.put("in", encoded("taken"))
    consumer = sends.connection.consumer(Queue("in"), window=1)
    unit = sends.unit("abc")
    unit.take(consumer.receive(1, SECONDS))
    sends.ending = place, how
    with pytest.raises(TransactionRolledBackError, match="full"):
        unit.commit()
    sends.connection.consumer(Queue("barrier"))  # everything before that is done
    assert not sends.broker.store.transactions
    assert sends.bodies() == []
    assert consumer.receive(1, SECONDS)[0].message.body == "taken"
    sends.unit("de").commit()
    assert sends.bodies() == ["d", "e"]


def test_nothing_is_committed_before_the_last_is_answered(sends):
    """The broker hears of a consumer that is opened meanwhile, and of no end of the transaction."""
    held, discharges, is_held = [], [], threading.Event()

    def hold_the_last(service, frame):
        if frame.body.settled:
            service.carry_out(frame)
        else:
            held.append(frame)
            is_held.set()

    def attach(service, frame):
        service.carry_out(frame)
        if held:
            discharges.append(sends.broker.seen[Discharge])
            service.carry_out(held.pop())

    sends.broker.instead.update({Transfer: hold_the_last, Attach: attach})
    committing = threading.Thread(target=sends.unit("abc").commit)
    committing.start()
    assert is_held.wait(SECONDS)
    sends.connection.consumer(Queue("in"))
    committing.join(SECONDS)
    assert not committing.is_alive()
    assert discharges == [0]
    assert sends.bodies() == ["a", "b", "c"]
