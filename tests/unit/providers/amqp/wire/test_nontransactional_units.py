"""Units without transactions of which the broker accepted a part."""

import pytest
from amqp_peer import Broker
from amqp_peer.performatives import SENDER, Attach, Close, Detach, Error, Target, Transfer

from jmsjca.destinations import Queue
from jmsjca.errors import TransactionInDoubtError, TransactionRolledBackError
from jmsjca.messages import TextMessage
from tests.unit.providers.amqp.wire.cut_account import body_of

GONE = Error(condition="amqp:resource-deleted", description="gone")
FULL = Error(condition="amqp:resource-limit-exceeded", description="full")
PREFIXES = {"RabbitMQ": "/queue/", "apache-activemq-artemis": ""}
REFUSING = ["amqp:not-allowed", "amqp:precondition-failed", "amqp:link:message-size-exceeded"]
DOUBTFUL = ["amqp:resource-deleted", "amqp:internal-error", "amqp:link:detach-forced", "vendor:own", None]
CLOSES = ["amqp:unauthorized-access", "amqp:not-allowed", "amqp:connection:forced", "amqp:resource-limit-exceeded"]


class Sends:
    """A broker, and a connection that sends to it."""

    def __init__(self, stage, product):
        self.broker, self.prefix = Broker(product), PREFIXES[product]
        self.connection = stage(self.broker).connect()
        self.held = []  # links that get no credit

    def commit(self, *names, atomic=False):
        """Send a message to each, in one unit."""
        unit = self.connection.unit(atomic=atomic)
        for name in names:
            unit.send(TextMessage(name), Queue(name))
        unit.commit()

    def target_of(self, service, frame):
        """Where a message goes, as the tests name it."""
        return service.links[frame.channel, frame.body.handle].attach.target.address.removeprefix(self.prefix)

    def end_link(self, name, how="detach", error=FULL):
        """End the link to a destination, or its session, instead of taking its message."""

        def instead(service, frame):
            if self.target_of(service, frame) != name:
                service.carry_out(frame)
            else:
                getattr(service, how)(frame, error)

        self.broker.instead[Transfer] = instead

    def hold(self, name, but=0):
        """Give no credit to the link to a destination, but for so many messages."""

        def instead(service, frame):
            target = frame.body.target
            if frame.body.role == SENDER and isinstance(target, Target) and target.address == self.prefix + name:
                self.held.append((service, service.attach(frame)))
                service.tell_credit(self.held[-1][1], but)
            else:
                service.carry_out(frame)

        self.broker.instead[Attach] = instead

    def release(self):
        """Give credit to what was held."""
        for service, link in self.held:
            service.tell_credit(link, 10)

    def bodies(self, name):
        return [body_of(kept.payload) for kept in self.broker.store.queues[self.prefix + name]]


@pytest.fixture(params=PREFIXES)
def sends(stage, request):
    return Sends(stage, request.param)


def test_a_link_that_ends_before_another_takes(sends):
    """The end of the first has been heard when the second takes its message."""
    late = []

    def end_or_keep(service, frame):
        service.detach(frame, GONE) if sends.target_of(service, frame) == "a" else late.append(frame)

    def take(service, frame):
        service.carry_out(frame)
        service.carry_out(late.pop())

    sends.broker.instead.update({Transfer: end_or_keep, Detach: take})
    with pytest.raises(TransactionInDoubtError, match=r"were sent, and others not.*gone"):
        sends.commit("a", "b")
    assert sends.bodies("b") == ["b"]


def test_a_link_that_ends_while_another_is_attached_anew(sends):
    """Nothing is sent over the second, as nothing can be over the first."""
    attached = {}

    def end_other(service, frame):
        for name in [name for name in attached if name != frame.body.target.address]:
            service.detach(attached.pop(name), GONE)
        attached[frame.body.target.address] = frame
        service.carry_out(frame)

    sends.broker.instead[Attach] = end_other
    with pytest.raises(TransactionRolledBackError, match="gone"):
        sends.commit("a", "b")
    assert Transfer not in sends.broker.seen


@pytest.mark.parametrize("why", [GONE, FULL])
def test_a_link_that_ends_with_several_unanswered(sends, why):
    """The first may have been taken, also where the reason refuses a message."""
    taken = []

    def instead(service, frame):
        if taken:
            service.detach(frame, why)
        taken.append(frame)

    sends.broker.instead[Transfer] = instead
    with pytest.raises(TransactionInDoubtError, match=f"may have been sent.*{why.description}"):
        sends.commit("a", "a")


@pytest.mark.parametrize("how", ["detach", "end"])
@pytest.mark.parametrize("condition", REFUSING)
def test_a_link_that_ends_with_one_unanswered_refuses_it(sends, condition, how):
    sends.end_link("a", how, Error(condition=condition, description="because"))
    with pytest.raises(TransactionRolledBackError, match=f"{condition}: because"):
        sends.commit("a")


@pytest.mark.parametrize("how", ["detach", "end"])
@pytest.mark.parametrize("condition", DOUBTFUL)
def test_an_unanswered_message_is_in_doubt_when_its_link_ends(sends, condition, how):
    """The broker may have taken the message before that happened, and its answer is lost."""
    sends.end_link("a", how, Error(condition=condition, description="because") if condition else None)
    with pytest.raises(TransactionInDoubtError, match=condition or "no reason given"):
        sends.commit("a")


def test_a_message_that_is_settled_without_an_outcome(sends):
    """Nothing tells what became of it."""
    sends.broker.instead[Transfer] = lambda service, frame: service.agree(frame, state=None)
    with pytest.raises(TransactionInDoubtError, match="no outcome"):
        sends.commit("a")


@pytest.mark.parametrize("condition", CLOSES)
def test_a_connection_that_is_closed_with_a_message_unanswered(sends, condition):
    """Whatever the reason is: even one that refuses a login."""
    sends.broker.instead[Transfer] = lambda service, frame: service.line.write(
        Close(error=Error(condition=condition, description="bye"))
    )
    with pytest.raises(TransactionInDoubtError, match=r"may have been sent.*bye"):
        sends.commit("a")


def test_what_waits_for_credit_when_a_unit_fails_is_never_sent(sends):
    """It was told to be rolled back."""
    sends.hold("b")
    sends.end_link("a")
    with pytest.raises(TransactionRolledBackError, match="full"):
        sends.commit("a", "b")
    sends.release()
    sends.commit("b")
    assert sends.bodies("b") == ["b"]


def test_what_waits_for_credit_when_its_link_ends(sends):
    """Nobody would ever answer it."""

    def end_held(service, frame):
        service.detach(held_attach.pop(), GONE)
        service.carry_out(frame)

    def hold(service, frame):
        if frame.body.role == SENDER and frame.body.target.address == sends.prefix + "a":
            held_attach.append(frame)
            service.attach(frame)
        else:
            service.carry_out(frame)

    held_attach = []
    sends.broker.instead.update({Attach: hold, Transfer: end_held})
    with pytest.raises(TransactionInDoubtError, match=r"were sent, and others not.*gone"):
        sends.commit("a", "b")


def test_what_waits_behind_what_had_credit_when_a_unit_fails_is_never_sent(sends):
    sends.hold("b", but=1)
    sends.end_link("a")
    with pytest.raises(TransactionInDoubtError, match=r"were sent, and others not.*full"):
        sends.commit("b", "b", "a")
    sends.release()
    sends.commit("b")
    assert sends.bodies("b") == ["b", "b"]


def test_what_waits_for_credit_when_a_transaction_fails_is_never_sent(stage):
    """The broker does not know the transaction any more."""
    sends = Sends(stage, "apache-activemq-artemis")
    sends.hold("b")
    sends.end_link("a")
    with pytest.raises(TransactionRolledBackError, match="full"):
        sends.commit("a", "b", atomic=True)
    sends.release()
    sends.commit("b", atomic=True)
    assert sends.bodies("b") == ["b"]
