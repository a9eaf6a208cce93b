"""What the tests of forked children share: what a thread is about at the fork, and programs that fork."""

from textwrap import indent

from tests.unit.providers.embedded.processes import heard, process

_TRY = """for call in calls:
        try:
            call()
        except ConnectionLostError as error:
            tell("refused" if "forked" in str(error) else error)
        else:
            tell("allowed")"""
_APPLICATION = """
from jmsjca import AcknowledgeMode, ConnectionFactory
from jmsjca.outbound.connection import SharedConnection
from jmsjca.outbound.context import create_context
factory = ConnectionFactory("{url}")
shared = SharedConnection(factory._settings_for(None, None), factory._hooks)
session, other = shared.create_session(transacted=True), shared.create_session()
context = create_context(shared, AcknowledgeMode.CLIENT, transacted=False)
consumer, producer = session.create_consumer(Queue("q")), other.create_producer(Queue("q"))
jms_producer = context.create_producer()
def child():
    calls = [
        shared.start, shared.stop, shared.create_session, context.create_context, session.create_producer,
        session.create_message, session.commit, session.rollback, context.recover, context.acknowledge,
        lambda: session.create_consumer(Queue("other")), lambda: consumer.receive(0), lambda: next(iter(consumer)),
        lambda: producer.send(TextMessage("x")), lambda: jms_producer.send(Queue("q"), "x"), message.acknowledge,
    ]
    {attempt}
    for each in [consumer, producer, session, context, shared]:
        each.close()
    with ConnectionFactory("{own}").create_connection() as own:
        own.create_session().create_producer(Queue("q")).send(TextMessage("y"))
    tell("own connection")
    sys.exit()
with shared, context, session, consumer, session.transaction():
    producer.send(TextMessage("a"))
    message = consumer.receive()
{before}
    if os.fork() == 0:
        signal.alarm(30)
        child()
    tell("ended", os.wait()[1])
{after}
    producer.send(TextMessage("c"))
    tell(consumer.receive().body)
tell("committed")
"""
_HOLD = """
locked, unlock = threading.Event(), threading.Event()
def hold():
    with {lock}:
        locked.set()
        unlock.wait()
holder = threading.Thread(target=hold)
holder.start()
locked.wait()
"""
_LET_GO = """
unlock.set()
holder.join()
"""
_RECEIVE = """
inside, receive = threading.Event(), consumer._receiver._consumer.receive
def receiving(*args):
    inside.set()
    return receive(*args)
consumer._receiver._consumer.receive = receiving
receiver = threading.Thread(target=consumer.receive)
receiver.start()
inside.wait()
"""
_RECEIVED = """
producer.send(TextMessage("b"))
receiver.join()
"""

LOCKS = [
    "shared._lock",
    "shared._state._changed",
    "session._lock",
    "context._lock",
    "consumer._receiver._receiving",
    "consumer._receiver._handing_over",
]
RECEIVING = "receiving"
EXPECTED = ["refused"] * 16 + ["own connection", "ended 0", "c", "committed"]


def held(lock: str | None) -> tuple[str, str]:
    """Let another thread have a lock at the fork: what it does before, and after. None for no lock."""
    return (_HOLD.format(lock=lock), _LET_GO) if lock else ("", "")


def said_by_forking(url: str, own: str, spare: str, busy: str | None) -> list[str]:
    """Let an application fork while one of its threads is busy: what its child says, and then it.

    Args:
        url: The broker.
        own: Where the child connects.
        spare: Where a connection goes that nobody uses.
        busy: `RECEIVING`, or the lock that the thread has; None for no thread.
    """
    before, after = (indent(part, "    ") for part in ((_RECEIVE, _RECEIVED) if busy == RECEIVING else held(busy)))
    with process(spare, _APPLICATION.format(url=url, own=own, before=before, after=after, attempt=_TRY)) as child:
        return [heard(child) for _ in EXPECTED]
