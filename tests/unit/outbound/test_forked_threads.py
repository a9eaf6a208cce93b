"""A forked child has no thread for completions, and none for listeners: it refuses to send, and closes at once."""

from tests.unit.providers.embedded.processes import heard, process

_FORK = """
from jmsjca import ConnectionFactory
connection = ConnectionFactory(url).create_connection()
connection.start()
sending, listening = connection.create_session(), connection.create_session()
producer, consumer = sending.create_producer(Queue("q")), listening.create_consumer(Queue("q"))
told, release, received = threading.Event(), threading.Event(), queue.SimpleQueue()
def completed(*outcome):
    told.set()
    release.wait()
producer.send(TextMessage("a"), on_completion=completed)
told.wait()
consumer.set_message_listener(lambda message: received.put(message.body))
tell(received.get())
if os.fork() == 0:
    signal.alarm(30)
    for call in (lambda: producer.send_async(TextMessage("x")), lambda: consumer.set_message_listener(None)):
        try:
            call()
        except ConnectionLostError:
            tell("refused")
    for each in (producer, consumer, sending, listening, connection):
        each.close()
    tell("closed")
    sys.exit()
tell("ended", os.wait()[1])
release.set()
producer.send_async(TextMessage("b"))
tell(received.get())
connection.close()
"""


def test_child_closes_what_the_threads_of_its_parent_use(tmp_path):
    with process(f"embedded://{tmp_path}/broker.db", f"import queue\n{_FORK}") as child:
        assert [heard(child) for _ in range(6)] == ["a", "refused", "refused", "closed", "ended 0", "b"]
