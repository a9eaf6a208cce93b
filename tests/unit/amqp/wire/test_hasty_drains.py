"""A broker that answers a drain although messages wait, as Artemis does while a socket takes no more."""

from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import SENDER, Flow

from jmsjca.destinations import Queue
from tests.unit.amqp.wire.account import encoded

QUEUE = Queue("q")


class Hasty:
    """Gives one message, and answers the next drain without another one."""

    def __init__(self):
        self.done = False

    def __call__(self, service, frame):
        link, flow = service.links[frame.channel, frame.body.handle], frame.body
        if self.done or link.attach.role == SENDER or not link.given:
            service.carry_out(frame)
        elif flow.drain:
            self.done = True
            link.given = flow.delivery_count + flow.link_credit
            service.tell_credit(link, 0, drain=True)


def test_what_waits_is_found_all_the_same(stage):
    broker = Broker()
    broker.instead[Flow] = hasty = Hasty()
    for body in "abc":
        broker.store.put("q", encoded(body))
    consumer = stage(broker).connect().consumer(QUEUE)
    found = list(consumer.receive(1, SECONDS))
    while chunk := consumer.receive(9, 0):
        found += chunk
    assert hasty.done
    assert [delivery.message.body for delivery in found] == ["a", "b", "c"]
