"""A handler that closes its session, as one closes what one has used: the next one who needs it gets another."""

import pytest

from jmsjca import Message, Outcome, Queue, Session, TextMessage
from tests.unit.inbound import PATIENCE, Recorder, send

OUT, REPLIES = Queue("out"), Queue("replies")


def bodies(adapter, queue):
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        return [message.body for message in session.create_browser(queue)]


def forward(message: Message, session: Session):
    with session:
        session.create_producer(OUT).send(session.create_text_message(message.body or "end"))
    return "reply"


def test_its_reply_is_sent(adapter, recorder: Recorder):
    adapter.listener("q")(forward)
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue("q")).send(TextMessage("a", reply_to=REPLIES))
    with adapter:
        recorder.await_outcome(Outcome.COMMITTED)
    assert (bodies(adapter, OUT), bodies(adapter, REPLIES)) == (["a"], ["reply"])


@pytest.mark.parametrize("mode", ["sync", "cc"])
def test_the_other_messages_of_its_batch_have_one(adapter, recorder: Recorder, mode):
    adapter.listener("q", concurrency_mode=mode, endpoint_pool_max_size=1, batch_size=3)(forward)
    send(adapter, *"abc")
    with adapter:
        assert recorder.outcomes.get(timeout=PATIENCE) == (Outcome.COMMITTED, 3)
    assert bodies(adapter, OUT) == ["a", "b", "c", "end"]
