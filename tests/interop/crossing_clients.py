"""The clients of the crossings: each sends one message, receives one, answers it, and returns it in four ways."""

import base64
import gzip
import queue
import socket
import time
from contextlib import suppress
from functools import cache
from urllib.parse import urlsplit

import stomp
from jms_java import JavaClient, JavaError, JavaPeer
from proton import Delivery, Message, Terminus, Timeout, int32, symbol
from proton.reactor import LinkOption
from proton.utils import BlockingConnection, LinkDetached, SendException

from jmsjca import ConnectionFactory, Queue
from jmsjca.config import Limits
from jmsjca.messages import BytesMessage, Double, Int, Long, MapMessage, TextMessage, type_name
from jmsjca.providers.common.codec import to_milliseconds
from jmsjca.reconnection import ConnectionSettings
from jmsjca.reconnection import connect as connect_provider

__all__ = ["ANSWERS", "LIFE", "NOT_OFFERED", "PATIENCE", "PROPERTIES", "WAYS", "ZIPPED", "clients_of", "open_client"]

PATIENCE = 60.0  # seconds for what must come
LIFE = 60.0  # seconds
ANSWERS = "answers"  # the word that stands for the name of the queue of answers
WAYS = ("release", "reject", "close", "cut")
NOT_OFFERED = "not offered"
PROPERTIES = {"text": "pear", "int": Int(7), "long": Long(2**40), "double": Double(1.5), "boolean": True}
ZIPPED = gzip.compress(b"a", mtime=0)
_TEXTS = {"text": "pear", "int": "7", "long": str(2**40), "double": "1.5", "boolean": "true"}
_PORT = {"amqp": 5672, "stomp": 61613}


class _Client:
    """A client of one broker: what all have.

    Args:
        broker: The name of the broker, such as ``artemis``.
        url: Its URL for the protocol of this client.
        mixed: True if the clients at both ends have different protocols.
    """

    protocol = "amqp"

    def __init__(self, broker, url, *, mixed):
        self.broker, self.url, self.mixed = broker, url, mixed
        parts = urlsplit(url)
        self.address = (parts.hostname, parts.port or _PORT[self.protocol])
        self.login = {"username": parts.username, "passcode": parts.password} if parts.username else {}


class StompPy(_Client):
    """A script with stomp.py, as its guide writes it."""

    protocol = "stomp"

    def __init__(self, broker, url, *, mixed):
        super().__init__(broker, url, mixed=mixed)
        self._connect()

    def _connect(self):
        self._frames = queue.Queue()
        self._connection = stomp.Connection12([self.address], auto_decode=False, vhost="/")
        self._connection.set_listener("", _Frames(self._frames))
        self._connection.connect(wait=True, **self.login)
        self._subscribed = None

    def _destination(self, name):
        if self.broker == "artemis":
            return name
        return f"/amq/queue/{name}" if self.broker == "rabbitmq4" and self.mixed else f"/queue/{name}"

    def send(self, name, case, answers):
        headers = {"destination-type": "ANYCAST"} if self.broker == "artemis" else {}
        if case == "delayed":
            if self.broker not in {"artemis", "activemq"}:
                return NOT_OFFERED
            headers["AMQ_SCHEDULED_DELAY"] = "1500"
        if case == "map":
            headers["content-type"] = "application/json"
        if case == "gzip":
            headers |= {"content-type": "text/plain", "content-encoding": "gzip"}
        if case == "full":
            headers |= {"content-type": "text/plain", "correlation-id": "order 1", "type": "order", "priority": "7"}
            headers |= {"persistent": "true", "JMSXGroupID": "g1", **_TEXTS}
            headers["reply-to"] = self._destination(answers)
            if self.broker in {"rabbitmq", "rabbitmq4"}:
                headers["expiration"] = str(round(LIFE * 1000))
            elif self.broker == "openmq":
                headers["expires"] = str(round(LIFE * 1000))
            else:
                headers["expires"] = str(round((time.time() + LIFE) * 1000))
        body = {"bytes": b"\0\xff", "map": '{"n": 1}', "gzip": ZIPPED}.get(case, "täxt")
        self._connection.send(self._destination(name), body, headers=headers, receipt="sent")
        frame = self._frames.get(timeout=PATIENCE)
        assert frame.cmd == "RECEIPT", frame.headers.get("message")
        return {"message id": None}

    def receive(self, name, seconds=PATIENCE):
        if self._subscribed != name:
            headers = {"subscription-type": "ANYCAST"} if self.broker == "artemis" else {}
            self._connection.subscribe(self._destination(name), name, "client-individual", headers)
            self._subscribed = name
        try:
            frame = self._frames.get(timeout=seconds)
        except queue.Empty:
            return None
        assert frame.cmd == "MESSAGE", frame.headers.get("message")
        self._frame = frame
        told = dict(frame.headers)
        expires = told.get("expires", "0")
        if "expiration" in told and expires == "0":  # RabbitMQ tells the life
            expires = round(time.time() * 1000) + int(told["expiration"])
        return {
            "message": None,
            "body": _body(frame.body),
            "content type": told.get("content-type"),
            "content encoding": told.get("content-encoding"),
            "message id": told.get("message-id"),
            "correlation id": told.get("correlation-id"),
            "type": told.get("type"),
            "reply to": told.get("reply-to"),
            "persistent": told.get("persistent") == "true",
            "priority": told.get("priority"),
            "expiration": int(expires) or None,
            "group": told.get("JMSXGroupID"),
            "properties": {name: f"string {value}" for name, value in told.items() if name not in _STANDARD_HEADERS},
            "count": None,
            "redelivered": told.get("redelivered") == "true",
        }

    def reply(self):
        self._connection.send(self._frame.headers["reply-to"], "an answer")

    def settle(self):
        self._connection.ack(self._frame.headers["ack"])

    def give_back(self, way):
        if way == "release":
            self._connection.unsubscribe(self._subscribed, receipt="unsubscribed")
            self._subscribed = None
            self._frames.get(timeout=PATIENCE)
        elif way == "reject":
            self._connection.nack(self._frame.headers["ack"])
            time.sleep(0.2)
            if not self._connection.is_connected():
                self._connect()
        elif way == "close":
            self.close()
            self._connect()
        else:
            self._connection.transport.disconnect_socket()
            self._connect()

    def close(self):
        with suppress(stomp.exception.NotConnectedException):
            self._connection.disconnect()


_STANDARD_HEADERS = frozenset(
    (
        *(
            "ack",
            "content-encoding",
            "content-length",
            "content-type",
            "correlation-id",
            "destination",
            "expiration",
            "expires",
        ),
        *("JMSXGroupID", "message-id", "persistent", "priority", "redelivered", "reply-to", "subscription"),
        *("timestamp", "type"),
    )
)


class _Frames(stomp.ConnectionListener):
    def __init__(self, frames):
        self.on_message = self.on_error = self.on_receipt = frames.put


class Proton(_Client):
    """A script with python-qpid-proton, as its guide writes it."""

    def __init__(self, broker, url, *, mixed):
        super().__init__(broker, url, mixed=mixed)
        self._connect()

    def _connect(self):
        self._receiver = self._name = None
        self._connection = BlockingConnection(self.url, timeout=PATIENCE, allowed_mechs="ANONYMOUS PLAIN")

    def _address(self, name):
        if "/" in name:
            return name
        return {"rabbitmq": "/queue/{}", "rabbitmq4": "/queues/{}", "activemq": "queue://{}"}.get(
            self.broker, "{}"
        ).format(name)

    def send(self, name, case, answers):
        bodies = {"bytes": b"\0\xff", "map": {"n": int32(1)}, "gzip": ZIPPED}
        message = Message(body=bodies.get(case, "täxt"), id=f"id-{name}")
        if case in {"bytes", "gzip"}:
            message.inferred = True  # a data section
        if case == "gzip":
            message.content_type, message.content_encoding = "text/plain", "gzip"
        if case == "delayed":
            if self.broker not in {"artemis", "activemq"}:
                return NOT_OFFERED
            message.annotations = {symbol("x-opt-delivery-delay"): 1500}
        if case == "full":
            message.durable, message.priority, message.ttl = True, 7, LIFE
            message.correlation_id, message.subject, message.group_id = "order 1", "order", "g1"
            message.content_type, message.reply_to = "text/plain", self._address(answers)
            message.properties = {"text": "pear", "int": int32(7), "long": 2**40, "double": 1.5, "boolean": True}
        sender = self._connection.create_sender(self._address(name), options=_Place("target", self.broker))
        try:
            sender.send(message)
        except SendException as error:
            return f"refused: {error}"
        finally:
            self._end(sender)
        return {"message id": message.id}

    def receive(self, name, seconds=PATIENCE):
        if self._name != name:
            if self._receiver is not None:
                self._end(self._receiver)
            self._receiver = self._connection.create_receiver(
                self._address(name), credit=1, options=_Place("source", self.broker)
            )
            self._name = name
        try:
            message = self._receiver.receive(timeout=seconds)
        except Timeout:
            return None
        self._message = message
        told = message.properties or {}
        kind = {bytes: "bytes", memoryview: "bytes", dict: "map", str: "text"}.get(
            type(message.body), type(message.body).__name__
        )
        return {
            "message": kind,
            "body": _body(message.body),
            "content type": _symbol(message.content_type),
            "content encoding": _symbol(message.content_encoding),
            "message id": message.id,
            "correlation id": message.correlation_id,
            "type": message.subject,
            "reply to": message.reply_to,
            "persistent": message.durable,
            "priority": message.priority,
            "expiration": round(message.expiry_time * 1000)
            or (round((time.time() + message.ttl) * 1000) if message.ttl else None),
            "group": message.group_id,
            "properties": {str(name): _proton_value(value) for name, value in told.items()},
            "count": message.delivery_count,
            "redelivered": message.delivery_count > 0 or not message.first_acquirer,
        }

    def _end(self, link):
        if self.broker != "rabbitmq":  # RabbitMQ 3 does not answer a detached link
            link.close()

    def reply(self):
        sender = self._connection.create_sender(self._message.reply_to, options=_Place("target", self.broker))
        sender.send(Message(body="an answer", durable=True))
        self._end(sender)

    def settle(self):
        self._receiver.accept()

    def give_back(self, way):
        if way == "release":
            self._receiver.release(delivered=False)
        elif way == "reject":
            self._receiver.settle(Delivery.REJECTED)
        elif way == "close":
            self.close()
            self._connect()
        else:
            self._connection.conn.transport._selectable._delegate.shutdown(socket.SHUT_RDWR)
            self._connect()

    def close(self):
        with suppress(LinkDetached):
            self._connection.close()


class _Place(LinkOption):
    """Asks for a queue, as Artemis wants it; on RabbitMQ 3 for a durable one, else it declares one that is not."""

    def __init__(self, end, broker):
        self._end, self._durability = end, Terminus.DELIVERIES if broker == "rabbitmq" else Terminus.NONDURABLE

    def apply(self, link):
        place = getattr(link, self._end)
        place.durability = self._durability
        place.capabilities.put_object(symbol("queue"))


def _symbol(value):
    """Proton reads a symbol that is null as the text None."""
    return None if value in {None, "", "None"} else str(value)


def _proton_value(value):
    if value is None:
        return "null"
    kind = type(value).__name__
    kind = {"str": "string", "int": "long", "float": "double", "bool": "boolean", "int32": "int"}.get(kind, kind)
    return f"{kind} {str(value).lower() if isinstance(value, bool) else int(value) if kind == 'int' else value}"


class JMSJCA(_Client):
    """This library, over AMQP."""

    def __init__(self, broker, url, *, mixed):
        super().__init__(broker, url, mixed=mixed)
        self._connection = ConnectionFactory(url).create_connection()
        self._connection.start()
        self._connect()

    def _connect(self):
        self._name = self._consumer = None
        self._spi = connect_provider(ConnectionSettings(self.url, limits=Limits(prefetch_messages=1)), None)

    def declare(self, name):
        """Make a queue, where a consumer makes it."""
        self._spi.consumer(Queue(name)).close()

    def send(self, name, case, answers):
        if case == "gzip":
            return NOT_OFFERED
        with self._connection.create_session(transacted=False) as session:
            message = {"bytes": BytesMessage(b"\0\xff"), "map": MapMessage({"n": Int(1)})}.get(
                case, TextMessage("täxt")
            )
            producer = session.create_producer(Queue(name))
            if case == "delayed":
                if not self._spi.capabilities.delivery_delay:
                    return NOT_OFFERED
                producer.send(message, delivery_delay=1.5)
            elif case == "full":
                message.correlation_id, message.type, message.reply_to = "order 1", "order", Queue(answers)
                message.properties.update(PROPERTIES)
                message.properties["JMSXGroupID"] = "g1"
                producer.send(message, priority=7, time_to_live=LIFE)
            else:
                producer.send(message)
        return {"message id": message.message_id}

    def receive(self, name, seconds=PATIENCE):
        if self._name != name:
            if self._consumer is not None:
                self._consumer.close()
            self._consumer, self._name = self._spi.consumer(Queue(name), window=1), name
        found = self._consumer.receive(1, seconds)
        if not found:
            return None
        self._delivery, message = found[0], found[0].message
        properties = dict(message.properties)
        group = properties.pop("JMSXGroupID", None)
        return {
            "message": type(message).__name__.removesuffix("Message").lower() or "plain",
            "body": _body(dict(message.body) if isinstance(message, MapMessage) else message.body),
            "message id": message.message_id,
            "correlation id": message.correlation_id,
            "type": message.type,
            "reply to": message.reply_to and str(message.reply_to),
            "persistent": message.delivery_mode.name == "PERSISTENT",
            "priority": message.priority,
            "expiration": to_milliseconds(message.expiration),
            "group": group,
            "properties": {
                name: f"{'null' if value is None else type_name(value)} {'true' if value is True else value}"
                for name, value in properties.items()
            },
            "count": None if self._delivery.count is None else self._delivery.count - 1,
            "redelivered": self._delivery.redelivered,
        }

    def reply(self):
        with self._connection.create_session(transacted=False) as session:
            session.create_producer(self._delivery.message.reply_to).send("an answer")

    def _unit(self):
        unit = self._spi.unit(atomic=self._spi.capabilities.atomic)
        unit.take([self._delivery])
        return unit

    def settle(self):
        self._unit().commit()

    def give_back(self, way):
        if way == "release":
            self._consumer.release([self._delivery])
        elif way == "reject":
            self._unit().rollback()
        else:
            self._spi.close(0 if way == "cut" else None)
            self._connect()
            return
        self._consumer.close()
        self._name = self._consumer = None

    def close(self):
        self._spi.close()
        self._connection.close()


class JMSJCAOverSTOMP(JMSJCA):
    """This library, over STOMP."""

    protocol = "stomp"


@cache
def _peer():
    """Start Java, once."""
    return JavaPeer()


class QpidJMS(_Client):
    """Qpid JMS."""

    def __init__(self, broker, url, *, mixed):
        super().__init__(broker, url, mixed=mixed)
        self._peer = _peer()
        self._connect()

    def _connect(self):
        self._client = JavaClient(self._peer, self.url.replace("openwire:", "tcp:"))
        self._session = self._client.session("client")
        self._consumer = self._name = None

    def _queue(self, name):
        return Queue(f"/queues/{name}" if self.broker == "rabbitmq4" else name)

    def send(self, name, case, answers):
        if case == "gzip":
            return NOT_OFFERED
        message = {"bytes": BytesMessage(b"\0\xff"), "map": MapMessage({"n": Int(1)})}.get(case, TextMessage("täxt"))
        options = {}
        if case == "delayed":
            if self.broker not in {"artemis", "activemq"} or self.protocol == "openwire":
                return NOT_OFFERED
            options["delay"] = 1500
        if case == "full":
            message.correlation_id, message.type, message.reply_to = "order 1", "order", self._queue(answers)
            message.properties.update(PROPERTIES)
            message.properties["JMSXGroupID"] = "g1"
            message.priority = 7
            options["life"] = round(LIFE * 1000)
        try:
            return {"message id": self._session.send(self._queue(name), message, **options)["message_id"]}
        except JavaError as error:
            return f"refused: {str(error)[:100]}"

    def receive(self, name, seconds=PATIENCE):
        if self._name != name:
            if self._consumer is not None:
                self._consumer.close()
            self._consumer, self._name = self._session.consumer(self._queue(name)), name
        told = self._consumer.receive_or_none(seconds)
        if told is None:
            return None
        properties = {
            name: "null" if value is None else f"{value[0]} {_java_value(*value)}"
            for name, value in told["properties"].items()
        }
        group = properties.pop("JMSXGroupID", None)
        return {
            "message": told["kind"],
            "body": _java_body(told["kind"], told["body"]),
            "message id": told["message_id"],
            "correlation id": told["correlation_id"],
            "type": told["type"],
            "reply to": told["reply_to"] and ":".join(told["reply_to"]),
            "persistent": told["persistent"],
            "priority": told["priority"],
            "expiration": told["expiration"] or None,
            "group": None if group in {None, "null"} else group.removeprefix("string "),
            "properties": properties,
            "count": told.get("delivery_count", 1) - 1,
            "redelivered": told["redelivered"],
        }

    def reply(self):
        self._consumer.reply("an answer")

    def settle(self):
        self._consumer.acknowledge()

    def give_back(self, way):
        if way == "release":
            self._session.close()
            self._session = self._client.session("client")
            self._name = self._consumer = None
        elif way == "reject":
            self._session.recover()
        elif way == "close":
            self._client.close()
            self._connect()
        else:
            return NOT_OFFERED
        return None

    def close(self):
        with suppress(JavaError):
            self._client.close()


class OpenWire(QpidJMS):
    """ActiveMQ's Java client over OpenWire."""

    protocol = "openwire"


def _java_value(kind, text):
    return float.fromhex(text) if kind in {"double", "float"} else text


def _java_body(kind, body):
    if body is None:
        return "none"
    if kind == "bytes":
        return _body(base64.b64decode(body[1]))
    return _body(body[1]) if kind == "text" else str(body)


def _body(body):
    """Tell a body: its text, or its bytes."""
    if isinstance(body, memoryview):
        body = bytes(body)
    if isinstance(body, bytes):
        try:
            text = body.decode()
        except UnicodeDecodeError:
            return f"0x{body.hex()}"
        return f"0x{body.hex()}" if "\0" in text else text
    return str(body)


_CLASSES = {
    "stomp.py": StompPy,
    "jmsjca STOMP": JMSJCAOverSTOMP,
    "proton": Proton,
    "jmsjca AMQP": JMSJCA,
    "Qpid JMS": QpidJMS,
    "OpenWire": OpenWire,
}
_WITHOUT = {
    "artemis": {"OpenWire"},
    "activemq": set(),
    "rabbitmq": {"OpenWire", "Qpid JMS"},
    "rabbitmq4": {"OpenWire"},
    "qpid": {"OpenWire", "stomp.py", "jmsjca STOMP"},
    "openmq": {"OpenWire", "Qpid JMS", "proton", "jmsjca AMQP"},
}


def clients_of(broker):
    """Return the names of the clients that can connect to a broker."""
    return [name for name in _CLASSES if name not in _WITHOUT[broker]]


def protocol_of(name):
    """Return the protocol of a client."""
    return _CLASSES[name].protocol


def open_client(name, broker, url, *, mixed):
    """Connect a client."""
    return _CLASSES[name](broker, url, mixed=mixed)
