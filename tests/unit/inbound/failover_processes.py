"""Two processes share a durable subscription; one is killed, and the other takes over."""

from jmsjca import Queue, TextMessage, Topic
from tests.unit.providers.embedded.processes import PATIENCE, heard, process

__all__ = ["END", "kill_one_of_two"]

END = -1

_NODE = """
from jmsjca import ActivationSpec, Hooks, ResourceAdapter, Topic
consumer._SAFETY_POLL = 1  # the claims of the dead are found by looking

class Told(Hooks):
    def status_changed(self, endpoint, status):
        tell("subscribed" if endpoint == activation.topic_side.name else "consuming", status)

def pass_on(message, session):
    session.create_producer(Queue("done.$")).send(TextMessage(message.body))

adapter = ResourceAdapter(url, hooks=[Told()])
activation = adapter.activate(
    ActivationSpec(
        destination=Topic("t.$"),
        subscription_durability="Durable",
        subscription_name="jmsjca://?distribution=1&subscribername=s.$&batchsize=3",
    ),
    pass_on,
)
with adapter:
    sys.stdin.read()
"""


def kill_one_of_two(url, connection, name):
    """Publish 200 messages, and kill the process that has the subscription while it is at work.

    Args:
        url: The broker.
        connection: To it.
        name: Part of the names of all that is made there.

    Returns:
        Which messages were done, and what comes next from the two queues: END, unless there was more to come.
    """
    node, finished, shared = _NODE.replace("$", name), Queue(f"done.{name}"), Queue(f"LOADBALQ_t.{name}_s.{name}")
    consumer = connection.consumer(finished)
    with process(url, node) as one:
        _until(one, "subscribed Up")
        with process(url, node) as two:
            _until(two, "consuming Up")
            _publish(connection, Topic(f"t.{name}"), range(100))
            done = _done(connection, consumer, 30)
            one.kill()
            _publish(connection, Topic(f"t.{name}"), range(100, 150))
            _until(two, "subscribed Up")
            _publish(connection, Topic(f"t.{name}"), range(150, 200))
            done += _done(connection, consumer, 170)
    _publish(connection, finished, [END])
    _publish(connection, shared, [END])
    return done, [*_done(connection, consumer, 1), *_done(connection, connection.consumer(shared), 1)]


def _publish(connection, to, numbers):
    """Each in a unit of its own, so that the batches of the topic side are of any size."""
    for number in numbers:
        unit = connection.unit()
        unit.send(TextMessage(f"{number}"), to)
        unit.commit()


def _done(connection, consumer, count):
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


def _until(child, words):
    while (said := heard(child)) != words:
        assert said, "the process has ended"
