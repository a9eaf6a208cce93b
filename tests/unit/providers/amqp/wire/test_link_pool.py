"""More destinations than sender links, relays, and removed temporary destinations."""

from dataclasses import dataclass, field
from itertools import count

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import SENDER, Attach, Error, Rejected, Target, Transfer

from jmsjca.destinations import Queue, Topic, destination
from jmsjca.errors import (
    InvalidDestinationError,
    MessageFormatError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.messages import TextMessage
from jmsjca.providers.amqp.links.link_pool import MAX_SENDER_LINKS
from jmsjca.providers.common import network
from tests.unit.providers.amqp.wire.cut_account import body_of, encoded

RELAY = "ANONYMOUS-RELAY"
COORDINATOR = 1


class Links:
    """How many links a client has for sending, and had at most at once."""

    def __init__(self, broker):
        self.made = self.most = 0
        broker.instead[Attach] = self._attach

    def _attach(self, service, frame):
        service.carry_out(frame)
        self.made += frame.body.role == SENDER
        self.most = max(self.most, sum(link.attach.role == SENDER for link in service.links.values()))


def send_to(connection, names, *, atomic=True):
    unit = connection.unit(atomic=atomic)
    for name in names:
        unit.send(TextMessage(f"to {name}"), Queue(name))
    unit.commit()


def bodies(broker, names):
    return [[body_of(kept.payload) for kept in broker.store.queues[name]] for name in names]


def names_of(count):
    return [f"q{number}" for number in range(count)]


@pytest.mark.parametrize(("count", "together", "atomic"), [(10_000, 10_000, True), (500, 100, False), (500, 1, True)])
def test_many_destinations_need_few_links_where_the_broker_relays(stage, count, together, atomic):
    broker = Broker(offers=(RELAY,))
    links, names = Links(broker), names_of(count)
    connection = stage(broker).connect()
    for at in range(0, len(names), together):
        send_to(connection, names[at : at + together], atomic=atomic)
    assert bodies(broker, names) == [[f"to {name}"] for name in names]
    assert links.made == MAX_SENDER_LINKS + 1 + (COORDINATOR if atomic else 0)


@pytest.mark.parametrize("together", [200, 1])
def test_links_make_room_for_others_where_it_does_not(stage, together):
    broker = Broker()
    links, names = Links(broker), names_of(200)
    connection = stage(broker).connect()
    for at in range(0, len(names), together):
        send_to(connection, names[at : at + together])
    assert bodies(broker, names) == [[f"to {name}"] for name in names]
    assert links.most <= MAX_SENDER_LINKS + 1 + COORDINATOR  # the next one comes before the oldest goes


def test_who_was_there_first_keeps_a_link(stage):
    broker = Broker(offers=(RELAY,))
    links, names = Links(broker), names_of(MAX_SENDER_LINKS + 1)
    connection = stage(broker).connect()
    send_to(connection, names)
    made = links.made
    send_to(connection, names)
    assert links.made == made


def test_a_check_asks_for_a_link_even_where_the_broker_relays(stage):
    """The relay would take anything, and say no later."""
    broker = Broker(offers=(RELAY,))
    connection = stage(broker).connect()
    send_to(connection, names_of(MAX_SENDER_LINKS + 1))

    def refuse(service, frame):
        service.agree(frame, target=None)
        service.detach(frame, Error(condition="amqp:not-found", description="nowhere"))

    broker.instead[Attach] = refuse
    with pytest.raises(InvalidDestinationError, match="nowhere"):
        connection.check(Queue("another"))


def test_a_send_asks_for_a_link_to_a_temporary_destination_even_where_the_broker_relays(stage):
    broker = Broker("ActiveMQ", offers=(RELAY,))
    connection = stage(broker).connect()
    send_to(connection, names_of(MAX_SENDER_LINKS + 1))

    def refuse(service, frame):
        service.agree(frame, target=None)
        service.detach(frame, Error(condition="amqp:not-found", description="gone"))

    broker.instead[Attach] = refuse
    unit = connection.unit()
    with pytest.raises(InvalidDestinationError, match="gone"):
        unit.send(TextMessage("a reply"), destination("replies", "queue", temporary=True))


def test_many_temporary_destinations_need_few_links_where_the_broker_relays(stage):
    broker = Broker("ActiveMQ", offers=(RELAY,))
    links, names = Links(broker), names_of(2 * MAX_SENDER_LINKS)
    unit = stage(broker).connect().unit()
    for name in names:
        unit.send(TextMessage(f"to {name}"), destination(name, "queue", temporary=True))
    unit.commit()
    assert bodies(broker, names) == [[f"to {name}"] for name in names]
    assert links.most <= MAX_SENDER_LINKS + 2 + COORDINATOR  # the relay, and the next one before the oldest goes


def test_what_the_relay_refuses_rolls_the_unit_back_and_names_the_destination(stage):
    broker = Broker(offers=(RELAY,))
    here = stage(broker)
    connection = here.connect()
    names = names_of(MAX_SENDER_LINKS)
    send_to(connection, names)
    broker.store.put("in", encoded("x"))
    unit = connection.unit()
    unit.take(connection.consumer(Queue("in"), window=0).receive(1, SECONDS))
    unit.send(TextMessage("y"), Queue(names[0]))
    unit.send(TextMessage("y"), Topic("unheard of"))

    def refuse(service, frame):
        link = service.links[frame.channel, frame.body.handle]
        relayed = isinstance(link.attach.target, Target) and link.attach.target.address is None
        state = Rejected(error=Error(condition="amqp:not-found", description="nowhere"))
        service.agree(frame, state=state) if relayed else service.carry_out(frame)

    broker.instead[Transfer] = refuse
    with pytest.raises(TransactionRolledBackError, match=r"topic:unheard of did not accept a message.*nowhere"):
        unit.commit()
    here.close()
    assert bodies(broker, ["in", names[0]]) == [["x"], ["to q0"]]


def test_a_relay_that_ends_is_attached_again(stage):
    broker = Broker(offers=(RELAY,))
    here = stage(broker)
    connection = here.connect()
    names = names_of(MAX_SENDER_LINKS)
    send_to(connection, names)
    broker.instead[Transfer] = lambda service, frame: service.detach(frame, Error(condition="amqp:internal-error"))
    with pytest.raises(TransactionInDoubtError, match="internal-error"):
        send_to(connection, ["another"], atomic=False)
    del broker.instead[Transfer]
    send_to(connection, ["another"], atomic=False)
    assert bodies(broker, ["another"]) == [["to another"]]
    assert not here.told


def test_a_relay_that_is_refused_rolls_the_unit_back(stage):
    broker = Broker(offers=(RELAY,))
    connection = stage(broker).connect()
    send_to(connection, names_of(MAX_SENDER_LINKS))

    def refuse(service, frame):
        service.agree(frame, target=None)
        service.detach(frame, Error(condition="amqp:unauthorized-access", description="because"))

    broker.instead[Attach] = refuse
    with pytest.raises(TransactionRolledBackError, match="any destination: amqp:unauthorized-access: because"):
        send_to(connection, ["another"])


@pytest.mark.parametrize("count", [3, MAX_SENDER_LINKS + 1, MAX_SENDER_LINKS + 10])
@pytest.mark.parametrize("product", ["RabbitMQ", "apache-activemq-artemis"])
def test_a_unit_without_transaction_of_which_some_was_sent_is_in_doubt(stage, product, count):
    """It did not roll back. What it took comes again."""
    broker = Broker(product)
    connection = stage(broker).connect()
    prefix = "/queue/" if product == "RabbitMQ" else ""
    broker.store.put(f"{prefix}in", encoded("x"))
    consumer = connection.consumer(Queue("in"), window=1)
    unit = connection.unit(atomic=False)
    unit.take(consumer.receive(1, SECONDS))
    names = names_of(count)
    for name in names:
        unit.send(TextMessage("y"), Queue(name))

    def refuse_the_last(service, frame):
        last = service.links[frame.channel, frame.body.handle].attach.target.address == prefix + names[-1]
        state = Rejected(error=Error(condition="amqp:not-allowed", description="full"))
        service.agree(frame, state=state) if last else service.carry_out(frame)

    broker.instead[Transfer] = refuse_the_last
    with pytest.raises(TransactionInDoubtError, match=r"were sent, and others not.*full"):
        unit.commit()
    assert bodies(broker, [prefix + names[0], prefix + names[-1]]) == [["y"], []]
    assert consumer.receive(1, SECONDS)[0].message.body == "x"


@pytest.mark.parametrize("atomic", [True, False])
def test_a_destination_to_which_every_message_was_refused_is_left_alone(stage, atomic):
    broker = Broker()
    links, unit = Links(broker), stage(broker).connect().unit(atomic=atomic)
    for lone in ("\ud800", "\udfff"):
        with pytest.raises(MessageFormatError):
            unit.send(TextMessage(lone), Queue("q"))
    unit.commit()
    assert links.made == 0


@dataclass
class Naming:
    """Names what is made, and notes what is asked for by its name."""

    numbers: count = field(default_factory=count)
    asked: list = field(default_factory=list)

    def __call__(self, service, frame):
        asked = frame.body.target
        if isinstance(asked, Target) and asked.dynamic:
            asked.fields["address"] = f"made {next(self.numbers)}"
        else:
            self.asked.append(asked.address)
        service.carry_out(frame)


def test_what_was_removed_is_refused_here_as_long_as_it_is_remembered(stage, monkeypatch):
    """Of more than so many the broker is asked: a connection may make new ones for years."""
    monkeypatch.setattr(network, "_MAX_REMOVED", 2)
    broker = Broker()
    broker.instead[Attach] = naming = Naming()
    connection = stage(broker).connect()
    removed = [connection.temporary("queue") for _ in range(4)]
    for each in removed:
        connection.remove(each)
    for each in removed[2:]:
        with pytest.raises(InvalidDestinationError, match="was deleted"):
            connection.check(each)
    for each in removed[:2]:
        connection.check(each)
    assert naming.asked == ["made 0", "made 1"]
