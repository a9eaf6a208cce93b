"""Units with several consumers, one of which fails at their end: what the others took is neither lost nor kept."""

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import Detach, End, Error, Flow

from jmsjca.destinations import Queue
from jmsjca.errors import TransactionInDoubtError, TransactionRolledBackError
from jmsjca.providers.amqp.engine import proton_ffi
from tests.unit.amqp.wire.account import body_of, encoded

GONE = Error(condition="amqp:resource-deleted", description="gone")
PREFIXES = {"apache-activemq-artemis": "", "ActiveMQ": "queue://", "RabbitMQ": "/queue/"}
NAMES = ("first", "second", "third")


class Held:
    """A unit that has taken a message of each of three queues, over links that ask for more."""

    def __init__(self, stage, product):
        self.broker, self._prefix = Broker(product), PREFIXES[product]
        self.here = stage(self.broker)
        self.connection = self.here.connect("reply_timeout=30")
        self.unit = self.connection.unit(atomic=self.connection.capabilities.atomic)
        self.consumers = {}
        for name in NAMES:
            self.broker.store.put(self._prefix + name, encoded(name))
            self.consumers[name] = self.connection.consumer(Queue(name), window=2)
            self.unit.take(self.consumers[name].receive(1, SECONDS))

    def end_at_flow(self, name, how):
        """Let the broker end this link when it is asked to stop, and in one of two ways."""

        def instead(service, frame):
            link = service.links.get((frame.channel, frame.body.handle))
            if link is None or link.attach.source.address != self._prefix + name:
                service.carry_out(frame)
            else:
                (service.detach if how is Detach else service.end)(frame, GONE)

        self.broker.instead[Flow] = instead

    def end(self, name, how):
        """End this link now."""
        self.end_at_flow(name, how)
        self.consumers[name].drain()
        del self.broker.instead[Flow]

    def left(self):
        """What the broker has when the connection has ended."""
        self.here.close()
        return {body_of(kept.payload) for queue in self.broker.store.queues.values() for kept in queue}


@pytest.fixture
def held(stage):
    return lambda product: Held(stage, product)


@pytest.mark.parametrize("how", [Detach, End])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("product", PREFIXES)
def test_a_rollback_reaches_the_consumers_behind_a_link_that_ends(held, product, name, how):
    here = held(product)
    here.end_at_flow(name, how)
    here.unit.rollback()
    others = [other for other in NAMES if other != name]
    assert [here.consumers[other].receive(1, SECONDS)[0].message.body for other in others] == others


@pytest.mark.parametrize("how", [Detach, End])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("product", ["apache-activemq-artemis", "ActiveMQ"])
def test_a_commit_that_fails_reaches_the_consumers_behind_a_link_that_ends(held, product, name, how):
    here = held(product)
    here.end(name, how)
    with pytest.raises(TransactionRolledBackError, match="gone"):
        here.unit.commit()
    others = [other for other in NAMES if other != name]
    assert [here.consumers[other].receive(1, SECONDS)[0].message.body for other in others] == others


@pytest.mark.parametrize("confirmed", [True, False])
@pytest.mark.parametrize("how", [Detach, End])
@pytest.mark.parametrize("name", NAMES)
def test_without_transactions_the_others_are_acknowledged(held, name, how, confirmed):
    """They were handled; were they forgotten, the broker would keep them for a link that never settles them."""
    here = held("RabbitMQ")
    here.end(name, how)
    with pytest.raises(TransactionInDoubtError, match="gone"):
        here.unit.commit(confirmed=confirmed)
    assert here.left() == {name}


@pytest.mark.parametrize("name", NAMES)
def test_without_transactions_all_are_confirmed(held, impatient, name):
    """A broker that has noted what came over two links may not have noted what came over the third."""
    here = held("RabbitMQ")

    def withhold(service, frame):
        link = service.links.get((frame.channel, frame.body.handle))
        if link is not None and link.attach.source.address == f"/queue/{name}":
            service.peer.leave_unanswered()
        else:
            service.carry_out(frame)

    here.broker.instead[Flow] = withhold
    impatient(here.here.peer)
    with pytest.raises(TransactionInDoubtError, match="did not answer"):
        here.unit.commit()


@pytest.mark.parametrize("product", PREFIXES)
def test_a_commit_stays_one_when_the_end_of_a_closed_consumer_fails(held, impatient, product):
    """Whoever is told that it failed does everything again."""
    here = held(product)
    for consumer in here.consumers.values():
        consumer.close()  # its link stays as long as the unit
    here.broker.instead[Detach] = lambda service, frame: service.peer.leave_unanswered()
    impatient(here.here.peer)
    here.unit.commit()
    assert here.here.lost.wait(SECONDS)
    assert here.left() == set()


@pytest.mark.parametrize("product", PREFIXES)
def test_a_fault_while_a_unit_is_written_is_in_doubt(held, product, monkeypatch, caplog):
    """Nobody knows how far it got: the connection is given up, and what was not committed comes again."""
    here = held(product)

    def fails(*_):
        raise RuntimeError("out of order")

    monkeypatch.setattr(proton_ffi, "_update", fails)
    with pytest.raises(TransactionInDoubtError, match="out of order"):
        here.unit.commit()
    assert here.here.lost.wait(SECONDS)
    assert here.left() == set(NAMES)
