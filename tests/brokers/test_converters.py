"""Bodies of each type reach listeners over every pair of a broker and a protocol, and their replies come back."""

import uuid
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from brokers import PAIRS
from pydantic import BaseModel

from jmsjca import BytesMessage, Message, Queue, ResourceAdapter, TextMessage
from jmsjca.messages.converters import Converters
from tests.unit.inbound.listeners import Inbox

SECONDS = 60


class Model(BaseModel):
    name: str
    count: int


@dataclass
class Point:
    x: float
    tags: list[str]


class Struct(msgspec.Struct):
    ok: bool
    parts: dict[str, int]


class Hinted(BaseModel):
    """A class with a type id of Java, and a content type."""

    name: str


BODIES = {
    "text": (str, "grün 🌱", TextMessage),
    "bytes": (bytes, b"\x00\xff\n\r\xc3\x28", BytesMessage),
    "list": (list[Any], [1, 2.5, "zwei", None, {"a": [True]}], TextMessage),
    "mapping": (dict[str, Any], {"a": {"b": ["c", 4]}}, TextMessage),
    "int": (int, 2**62, TextMessage),
    "float": (float, 0.1, TextMessage),
    "bool": (bool, False, TextMessage),
    "pydantic": (Model, Model(name="ä\nb", count=3), TextMessage),
    "dataclass": (Point, Point(1.5, ["a", "b"]), TextMessage),
    "msgspec": (Struct, Struct(True, {"a": 1}), TextMessage),
    "hinted": (Hinted, Hinted(name="h"), TextMessage),
}


@pytest.fixture(scope="module", params=PAIRS)
def url(request, broker_url):
    return broker_url(request.param)


@pytest.fixture
def converters():
    own = Converters()
    own.register(Hinted, type_id="com.example.Hinted", content_type="application/json; charset=utf-8")
    return own


class Received:
    """Handlers that keep what they got, and reply with it."""

    def __init__(self) -> None:
        self.bodies = Inbox().got

    def handler(self, kind: Any) -> Any:
        """Return a handler whose body has a type."""

        def handle(body: object, message: Message) -> object:
            self.bodies.put((body, message))
            return body

        handle.__annotations__["body"] = kind
        return handle


def test_bodies_are_typed_in_listeners_and_in_replies(url, converters):
    """Each send goes through `adapter.send`, to a listener with a parameter of that type, and is replied with."""
    name, received = f"converters.{uuid.uuid4().hex}", Received()
    replies = Queue(f"{name}.replies")
    adapter = ResourceAdapter(url, converters=converters)
    for case, (kind, _, _) in BODIES.items():
        adapter.listener(f"{name}.{case}", transaction="none")(received.handler(kind))
    with adapter, adapter.connection_factory().create_connection() as connection:
        adapter.start(wait=SECONDS)
        consumer = connection.create_session().create_consumer(replies)
        for case, (kind, body, message_type) in BODIES.items():
            sent = adapter.send(f"{name}.{case}", body, reply_to=replies, correlation_id=case)
            got, message = received.bodies.get(timeout=SECONDS)
            assert (type(got), got) == (type(body), body), case
            assert (type(sent), type(message)) == (message_type, message_type), case
            reply = consumer.receive(timeout=SECONDS)
            assert (type(reply), reply.correlation_id) == (message_type, case)
            assert converters.from_message(reply, kind) == body, case
            hints = {key: reply.properties.get(key) for key in ("_type", "content_type")}
            hinted = {"_type": "com.example.Hinted", "content_type": "application/json; charset=utf-8"}
            assert hints == (hinted if case == "hinted" else dict.fromkeys(hinted)), case


def test_type_id_selects_the_class_of_a_received_body(url, converters):
    """The parameter accepts any registered class; a reply keeps the hints of its own class."""
    name, received = f"converters.{uuid.uuid4().hex}", Received()
    converters.register(Point, type_id="com.example.Point")
    adapter = ResourceAdapter(url, converters=converters)
    adapter.listener(name, transaction="none")(received.handler(Hinted | Point))
    with adapter:
        adapter.start(wait=SECONDS)
        for body in (Point(1.0, []), Hinted(name="b")):
            adapter.send(name, body)
            got, message = received.bodies.get(timeout=SECONDS)
            assert got == body
            assert message.properties["_type"] == f"com.example.{type(body).__name__}"
