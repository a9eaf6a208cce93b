"""What RabbitMQ with its STOMP plug-in wants."""

import re
from urllib.parse import quote, unquote

from jmsjca.destinations import Destination, Subscription, destination
from jmsjca.messages import Message, TextMessage
from jmsjca.providers.stomp.decoding import Content
from jmsjca.providers.stomp.dialect import Dialect, destination_of
from jmsjca.providers.stomp.frames import Frame
from jmsjca.providers.stomp.translation import translate

__all__ = ["RabbitMQ"]

_READ = re.compile(r"/(?:reply-)?(queue|topic)/(.+)\Z", re.DOTALL)
_SPECIAL = re.compile(r"[*#]|%2[Ff]")


class RabbitMQ(Dialect):
    """RabbitMQ with its STOMP plug-in."""

    __slots__ = ()
    returns_by_nack = True
    confirms_before_commit = False

    def special(self) -> re.Pattern[str]:
        """Wildcards, and what it would decode."""
        return _SPECIAL

    def address(self, to: Destination) -> dict[str, str]:
        """A slash in a name is the one character that it decodes."""
        name = self.checked(to).replace("/", "%2F")
        return {"destination": f"/{to.kind}/{name}"}

    def read_address(self, text: str) -> Destination | None:
        """What it writes itself is encoded as in a URL."""
        found = _READ.match(text)
        return destination(unquote(found[2]), found[1]) if found else None

    def decode(self, frame: Frame, source: Destination, **delivered: object) -> Message:
        """Read a MESSAGE frame, also of what came over AMQP 1.0."""
        return Dialect.decode(self, translate(frame), source, **delivered)

    def extras(self, message: Message) -> dict[str, str]:
        """The message id and the MIME type as AMQP knows them, and what is left of its time, in milliseconds."""
        name = {"amqp-message-id": message.message_id} if message.message_id else {}
        if isinstance(message, TextMessage):
            name["content-type"] = "text/plain"
        if message.expiration is None:
            return name
        left = message.expiration.timestamp() - (message.timestamp or message.expiration).timestamp()
        return {**name, "expiration": str(max(round(left * 1000), 0))}

    def content(self, frame: Frame) -> Content:
        """By its MIME type."""
        return Content.TEXT if frame.headers.get("content-type", "").startswith("text/") else Content.BYTES

    def subscribe(self, source: Destination | Subscription, window: int) -> dict[str, str]:
        """A durable subscription is a queue, named after the client id and the subscription."""
        headers = {**self.address(destination_of(source)), "prefetch-count": str(window)}
        if isinstance(source, Subscription) and source.name is not None:
            headers |= {"durable": "true", "auto-delete": "false", **self.unsubscribe(source)}
        return headers

    def silence(self) -> dict[str, str]:
        """The queue of direct replies, which nobody knows the address of. It is always there and needs no rights."""
        return {"destination": "/amq/queue/amq.rabbitmq.reply-to", "ack": "auto"}

    def acknowledgement(self, frame: Frame) -> dict[str, str]:
        """The same id stands in two headers; what still comes to a silenced subscription has one of them only."""
        if self.version == "1.1":
            return Dialect.acknowledgement(self, frame)
        return {"id": frame.headers["message-id"]}

    def unsubscribe(self, source: Subscription) -> dict[str, str]:
        """By the name of its queue, which names the topic too, so that two topics never share one."""
        return {"durable": "true", "x-queue-name": self.queue_of(source)}

    def refuses_all_of(self, text: str, sends: int) -> bool:
        """It stops at the first one that it refuses; only of a single one is it known which that was."""
        return sends == 1 and "access_refused" in text

    def look_for(self, source: Subscription) -> dict[str, str]:
        """The headers of a SUBSCRIBE that fails if there is no such subscription."""
        return {
            "destination": f"/amq/queue/{self.queue_of(source)}",
            "ack": "client-individual",
            "prefetch-count": "1",
        }

    def queue_of(self, source: Subscription) -> str:
        """The queue of a durable subscription; a percent sign would be decoded."""
        return ":".join(
            quote(part or "", safe="").replace("%", "=") for part in (source.topic.name, source.client_id, source.name)
        )
