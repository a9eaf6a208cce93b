"""Two processes share a durable subscription; one is killed at work, and the other takes over."""

from jmsjca import Queue, TextMessage, Topic
from tests.unit.processes import PATIENCE, heard, process

NODE = """
from jmsjca import ActivationSpec, Hooks, ResourceAdapter, Topic
consumer._SAFETY_POLL = 1  # the claims of the dead are found by looking

class Told(Hooks):
    def status_changed(self, endpoint, status):
        tell("subscribed" if endpoint == activation.topic_side.name else "consuming", status)

def pass_on(message, session):
    session.create_producer(Queue("done")).send(TextMessage(message.body))

adapter = ResourceAdapter(url, hooks=[Told()])
name = "jmsjca://?distribution=1&subscribername=s&batchsize=3"
activation = adapter.activate(
    ActivationSpec(destination=Topic("t"), subscription_durability="Durable", subscription_name=name), pass_on
)
with adapter:
    sys.stdin.read()
"""


def publish(connection, numbers):
    """Each in a unit of its own, so that the batches of the topic side are of any size."""
    for number in numbers:
        unit = connection.unit()
        unit.send(TextMessage(f"{number}"), Topic("t"))
        unit.commit()


def done(connection, consumer, count):
    """Take so many of the messages that have been passed on."""
    bodies = []
    while len(bodies) < count:
        deliveries = consumer.receive(count - len(bodies), PATIENCE)
        assert deliveries, f"only {len(bodies)} of {count}"
        bodies += [int(delivery.message.body) for delivery in deliveries]
        unit = connection.unit()
        unit.take(deliveries)
        unit.commit()
    return bodies


def until(child, words):
    while (said := heard(child)) != words:
        assert said, "the process has ended"


def test_nothing_is_lost_or_doubled_when_the_process_with_the_subscription_is_killed(connected_file, broker_file):
    connection = connected_file()
    consumer = connection.consumer(Queue("done"))
    with process(broker_file, NODE) as one:
        until(one, "subscribed Up")
        with process(broker_file, NODE) as two:
            until(two, "consuming Up")
            publish(connection, range(100))
            bodies = done(connection, consumer, 30)
            one.kill()
            publish(connection, range(100, 150))
            until(two, "subscribed Up")
            publish(connection, range(150, 200))
            bodies += done(connection, consumer, 170)
    assert sorted(bodies) == list(range(200))
    depths = [connection.admin().depth(Queue(name)).total for name in ("done", "LOADBALQ_t_s")]
    assert depths == [0, 0]
