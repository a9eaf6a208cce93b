"""A commit whose deliveries the broker has taken back meanwhile, or takes back with the transaction."""

import pytest
from proton import Condition, Delivery, Message

from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, TransactionInDoubtError, TransactionRolledBackError
from tests.unit.amqp.behaviour import reject

QUEUE = Queue("q")


@pytest.fixture
def holding(line):
    """Give a function that opens a line whose unit holds one delivery, while a second one waits."""

    def make(product="ActiveMQ"):
        each = line(product)
        each.open("reply_timeout=30")
        links = []
        attach = each.peer.on_attach
        each.peer.reactions["attach"] = lambda event: (links.append(event.link), attach(event))
        each.peer.stock.extend(Message(body=body).encode() for body in ("first", "second"))
        consumer = each.connection.consumer(QUEUE, window=2)
        unit = each.connection.unit(atomic=each.connection.capabilities.atomic)
        unit.take(consumer.receive(1, None))
        each.peer.wait_until(lambda: getattr(links[0], "limit", 0) == 3)  # it has asked for all that it will
        return each, links[0], consumer, unit

    return make


def end_link(line, link):
    def end():
        link.condition = Condition("amqp:resource-deleted", "gone")
        link.close()

    line.peer.do(end)
    line.peer.wait_for("detach")  # the client has heard of it


@pytest.mark.parametrize("product", ["ActiveMQ", "RabbitMQ"])
def test_a_unit_whose_link_was_ended_does_not_commit(holding, product):
    """Its messages are somebody else's by now: an acknowledgement would go nowhere."""
    line, link, _, unit = holding(product)
    end_link(line, link)
    with pytest.raises((TransactionRolledBackError, TransactionInDoubtError, ConnectionLostError)):
        unit.commit()
    assert "acknowledge" not in line.peer.order


def test_a_unit_whose_link_was_ended_discharges_its_transaction(holding):
    line, link, _, unit = holding()
    end_link(line, link)
    with pytest.raises(TransactionRolledBackError):
        unit.commit()
    assert line.peer.order[-1] == "rollback"


def test_a_unit_whose_second_link_was_ended_settles_nothing_of_the_first(holding):
    """In a transaction that is rolled back it would come again behind what is here already."""
    line, _, consumer, unit = holding()
    attach, links = line.peer.reactions["attach"], []
    line.peer.reactions["attach"] = lambda event: (links.append(event.link), attach(event))
    line.peer.do(lambda: line.peer.stock.append(Message(body="third").encode()))  # when it has answered that flow
    other = line.connection.consumer(QUEUE, window=1)
    unit.take(other.receive(1, 30))
    end_link(line, links[0])
    with pytest.raises(TransactionRolledBackError):
        unit.commit()
    assert line.peer.order[-1] == "rollback"
    assert line.peer.settled == []
    assert [d.message.body for d in consumer.receive(9, 30)] == ["first", "second"]


@pytest.mark.parametrize("confirmed", [True, False])
def test_a_link_that_was_ended_holds_up_the_acknowledgement_of_no_other(holding, confirmed):
    """Without transactions each is for itself, and the unit is in doubt."""
    line, link, _, unit = holding("RabbitMQ")
    line.peer.do(lambda: line.peer.stock.append(Message(body="third").encode()))
    other = line.connection.consumer(QUEUE, window=1)
    unit.take(other.receive(1, 30))
    end_link(line, link)
    with pytest.raises(TransactionInDoubtError):
        unit.commit(confirmed=confirmed)
    line.peer.wait_until(lambda: [state for _, state in line.peer.settled] == [Delivery.ACCEPTED])


def test_a_discharge_that_is_rejected_ends_the_connection(holding):
    """The broker has taken the messages of the unit back; only a new connection gets all of them in order."""
    line, _, _, unit = holding()
    line.peer.reactions["discharge"] = reject
    with pytest.raises(TransactionRolledBackError):
        unit.commit()
    assert line.lost.wait(30)


@pytest.mark.parametrize("product", ["ActiveMQ", "RabbitMQ"])
def test_a_link_that_ends_in_answer_to_the_stop_is_closed_all_the_same(line, product):
    """The broker has taken back what it had sent, so there is nothing left to wait for."""
    each = line(product)
    each.open("reply_timeout=30")
    consumer = each.connection.consumer(QUEUE, window=2)
    each.peer.wait_for("flow")

    def end(event):
        event.link.condition = Condition("amqp:resource-deleted", "gone")
        event.link.close()

    each.peer.reactions.update(flow=end, drain=end)
    consumer.close()
    assert not each.lost.is_set()
