"""A forked child refuses what its parent opened: the threads that would do it are not there."""

import pytest

from tests.unit.providers.embedded.processes import heard, process

_FORK = """
import asyncio
from jmsjca import ConnectionFactory, aio
async def opened():
    connection = await aio.connect(ConnectionFactory(url))
    await connection.start()
    session = await connection.create_session(transacted=True)
    return connection, session, await session.create_consumer(Queue("q")), await session.create_producer(Queue("q"))
shared, session, consumer, producer = asyncio.run(opened())
async def called():
    calls = [
        shared.start, shared.stop, shared.create_session, session.commit, session.rollback,
        lambda: consumer.receive(0), lambda: anext(consumer), lambda: producer.send(TextMessage("x")),
    ]
    for call in calls:
        try:
            await call()
        except ConnectionLostError:
            tell("refused")
        else:
            tell("allowed")
    for each in [consumer, session, shared]:
        await each.close()
    tell("closed")
{before}
if os.fork() == 0:
    signal.alarm(30)
    asyncio.run(called())
    sys.exit()
tell("ended", os.wait()[1])
{after}
async def worked():
    await producer.send(TextMessage("a"))
    await session.commit()
    tell((await consumer.receive()).body)
    await shared.close()
asyncio.run(worked())
"""
_WAIT = """
inside, going_on, receive = threading.Event(), threading.Event(), consumer._wrapped._receiver._consumer.receive
def receiving(*args):
    inside.set()
    going_on.wait()
    return receive(*args)
consumer._wrapped._receiver._consumer.receive = receiving
waiter = threading.Thread(target=lambda: asyncio.run(consumer.receive(0)))
waiter.start()
inside.wait()
"""
_END = """
going_on.set()
waiter.join()
"""


@pytest.mark.parametrize(("before", "after"), [("", ""), (_WAIT, _END)], ids=["quiet", "while a task receives"])
def test_forked_child_refuses_what_its_parent_opened(broker_file, before, after):
    with process(broker_file, _FORK.format(before=before, after=after)) as child:
        said = [heard(child) for _ in range(11)]
    assert said == ["refused"] * 8 + ["closed", "ended 0", "a"]
