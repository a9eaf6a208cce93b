"""Messages that are made of plain bodies, wherever one can be sent."""

import asyncio
from collections import ChainMap, OrderedDict
from dataclasses import dataclass

import pytest
from pydantic import BaseModel, RootModel
from pydantic.dataclasses import dataclass as pydantic_dataclass

from jmsjca import BytesMessage, MapMessage, Message, Queue, Requestor, TextMessage, aio
from jmsjca.errors import MessageFormatError
from jmsjca.messages.converters import message_from_body

QUEUE = Queue("q")


class Model(BaseModel):
    item: str = "tea"


@dataclass(frozen=True)
class Point:
    x: int = 1


@pydantic_dataclass
class Checked:
    x: int = 2


BODIES = [
    ("text", TextMessage, "text"),
    (b"bytes", BytesMessage, b"bytes"),
    (bytearray(b"bytes"), BytesMessage, b"bytes"),
    ({"a": 1}, MapMessage, {"a": 1}),
    (OrderedDict(a=1), MapMessage, {"a": 1}),
    (ChainMap({"a": 1}), MapMessage, {"a": 1}),
    (Model(), TextMessage, '{"item":"tea"}'),
    (RootModel[list[int]]([1]), TextMessage, "[1]"),
    (Point(), TextMessage, '{"x":1}'),
    (Checked(), TextMessage, '{"x":2}'),
]


@pytest.mark.parametrize(("body", "kind", "expected"), [*BODIES, (None, Message, None)])
def test_kind_of_message_follows_from_the_body(body, kind, expected):
    message = message_from_body(body)
    assert (type(message), message.body) == (kind, expected)


@pytest.mark.parametrize("body", [5, 5.0, True, [1], (1,), {1}, object(), Model, Point, str, iter("a")])
def test_other_bodies_are_refused(body):
    with pytest.raises(MessageFormatError, match="Send a str, bytes, a mapping, a pydantic model, a dataclass, or"):
        message_from_body(body)


@pytest.mark.parametrize(("body", "kind", "expected"), BODIES)
def test_every_producer_takes_bodies(jms_connection_factory, body, kind, expected):
    with jms_connection_factory.create_context() as context:
        with jms_connection_factory.create_connection() as connection, connection.create_session() as session:
            session.create_producer(QUEUE).send(body, priority=7)
            session.create_producer(QUEUE).send_async(body, priority=7).result()
            context.create_producer(priority=7).send(QUEUE, body)
            asyncio.run(send_in_asyncio(jms_connection_factory, body))
        consumer = context.create_consumer(QUEUE)
        received = [consumer.receive(0) for _ in range(4)]
        assert [(type(message), message.body, message.priority) for message in received] == [(kind, expected, 7)] * 4


async def send_in_asyncio(factory, body):
    async with (
        aio.connect(factory) as connection,
        connection.create_session() as session,
        session.create_producer(QUEUE) as producer,
    ):
        await producer.send(body, priority=7)


def test_requestor_takes_bodies(jms_connection_factory):
    with jms_connection_factory.create_connection() as connection, connection.create_session() as session:
        assert Requestor(session, QUEUE).request({"question": 1}, timeout=0) is None
        with connection.create_session() as other:
            request = other.create_consumer(QUEUE).receive(1)
    assert (request.body, request.reply_to is None) == ({"question": 1}, False)
