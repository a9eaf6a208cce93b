"""Apache Artemis over STOMP: its dialect and capabilities."""

import json
import re
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import lru_cache
from typing import Any, NamedTuple

from jmsjca.destinations import Destination, Subscription, Topic, destination
from jmsjca.errors import IllegalStateError, MessageFormatError, NotSupportedError
from jmsjca.log_records import get_logger
from jmsjca.messages import GROUP_ID, Message
from jmsjca.providers.brokers.artemis import (
    MANAGEMENT_ADDRESS,
    OVER_STOMP,
    RELEASE,
    SUCCEEDED,
    identifiers_in,
    operation_headers,
    queue_filter,
    to_artemis_filter,
)
from jmsjca.providers.brokers.profile import BrokerProfile
from jmsjca.providers.stomp.codec import Content
from jmsjca.providers.stomp.dialect import Dialect, destination_of, quote_client_id
from jmsjca.providers.stomp.errors import BrokerRefusedError
from jmsjca.providers.stomp.protocol.frames import Frame
from jmsjca.providers.stomp.protocol.session import STOMPSession

__all__ = ["ARTEMIS", "Artemis"]

logger = get_logger("jmsjca.stomp")

_SPECIAL = re.compile(r"[*#]|::")
_ROUTING = {"queue": "ANYCAST", "topic": "MULTICAST"}
_KINDS: dict[str | None, Content] = {"0": Content.NONE, "3": Content.BYTES, "5": Content.TEXT}
_DELIVERY = re.compile(r"\d+,\d+")  # the consumer and the message: another one at each redelivery
_ENCODING = "JMS_AMQP_ORIGINAL_ENCODING"
_DROPPED_BODIES = {"3", "7", "8"}  # a sequence, a map and a list, in `AMQPMessageSupport`
_GROUP = "_AMQ_GROUP_ID"
_CONVERTED = "convert_string_expressions:"
_BYTES = 1024  # of the window for each message that may be unsettled


class Artemis(Dialect):
    """Apache Artemis. Its destination names have no prefixes."""

    __slots__ = ()
    acknowledges_in_transaction = False
    confirms_in_order = True  # it ends the connection at the first SEND that it refuses
    duplicate_ids_before_transaction = True
    confirms_unknown_unsubscribe = True
    wildcards = ("*", "#")

    def forbidden_in_names(self) -> re.Pattern[str]:
        """Return the pattern of wildcards, and of queues named together with their address."""
        return _SPECIAL

    def address(self, to: Destination, *, subscribed: bool = False) -> dict[str, str]:
        """Return the bare name and the routing type."""
        return {
            "destination": self.checked_name(to, subscribed=subscribed),
            "destination-type": _ROUTING[to.kind],
        }

    def read_address(self, text: str) -> Destination | None:
        """Parse a destination in the form of Artemis' JMS client. A bare name, of other clients, is a queue."""
        kind, mark, name = text.partition("://")
        return destination(name, kind) if mark and name and kind in _ROUTING else destination(text, "queue")

    def reply_to(self, message: Message) -> str | None:
        """Return the destination of replies in the form of Artemis' JMS client."""
        return f"{message.reply_to.kind}://{message.reply_to.name}" if message.reply_to else None

    def broker_headers(self, message: Message) -> dict[str, str]:
        """Return the expiration and delivery time."""
        due = message.delivery_time
        delay = {"AMQ_SCHEDULED_TIME": str(round(due.timestamp() * 1000))} if due else {}
        return {**Dialect.broker_headers(self, message), **delay}

    def decode(self, frame: Frame, source: Destination, **delivered: object) -> Message:
        """Decode a MESSAGE frame. Its message-id names the delivery: as an id each redelivery would be another message.

        Its bare name is the topic that matched a pattern.

        Raises:
            MessageFormatError: It is a map, a stream or an object of AMQP, which the broker delivers without its body.
        """
        told = frame.headers
        if told.get(_ENCODING) in _DROPPED_BODIES:
            raise MessageFormatError(
                f"A message from {source} was sent over AMQP as a map, stream or object: Artemis delivers it over STOMP"
                " without its body. Receive it over amqp://, or send it as text or bytes."
            )
        headers = dict(told)
        if _DELIVERY.fullmatch(told.get("message-id", "")):
            del headers["message-id"]
        if (group := told.get(_GROUP)) is not None:
            headers.setdefault(GROUP_ID, group)
        is_pattern = isinstance(source, Topic) and not set(self.wildcards).isdisjoint(source.name.split("."))
        of = Topic(told["destination"]) if is_pattern else source
        return Dialect.decode(self, frame._replace(headers=headers), of, **delivered)

    def content(self, frame: Frame) -> Content:
        """Return the kind of a body: the bytes decide, unless a header of AMQP gives it. Each body has a length."""
        if frame.headers.get("JMS_AMQP_ContentType", "").startswith("text/"):
            return Content.TEXT
        return _KINDS.get(frame.headers.get("JMS_AMQP_MA_x-opt-jms-msg-type"), Content.GUESS)

    def subscribe(self, source: Destination | Subscription, window: int) -> dict[str, str]:
        """Return the headers of SUBSCRIBE; the window counts bytes."""
        to = destination_of(source)
        headers = {
            "destination": self.checked_name(to, subscribed=True),
            "subscription-type": _ROUTING[to.kind],
            "consumer-window-size": str(window * _BYTES),
        }
        if isinstance(source, Subscription) and source.name is not None:
            headers["durable-subscription-name"] = _name(source)
        return headers

    def selector(self, text: str) -> dict[str, str]:
        """Return the selector. Text that holds a number compares as that number, as in ActiveMQ: STOMP sends only text.

        Raises:
            NotSupportedError: It selects by message id, which the broker does not know over STOMP.
        """
        if "JMSMessageID" in identifiers_in(text):
            raise NotSupportedError("Over STOMP Artemis knows no JMSMessageID: select by a property, or use amqp://.")
        return {"selector": f"{_CONVERTED}{to_artemis_filter(text)}"}

    def is_window_full(self, held: int, size: int, window: int) -> bool:
        """Compare bytes. The broker counts them differently, so half of the window is taken for all of it."""
        del held
        return 2 * size >= window * _BYTES

    def recreates_changed(
        self, source: Subscription, selector: str | None, open_side_session: Callable[[], STOMPSession]
    ) -> bool:
        """Remove the subscription if it exists with another topic or selector: the broker does not compare them.

        Returns:
            False if the management of the broker does not say with which topic and selector it exists.

        Raises:
            IllegalStateError: It is in use with another topic or selector, or the broker does not remove it.
            JMSError: The broker refuses the new topic or selector. The subscription stays as it is.
        """
        queue, chosen = _queue_name(source), self.selector(selector) if selector else {}
        side = open_side_session()
        try:
            found = _find_queue(side, queue)
            if found is None:
                _warn_of_unknown_subscription(source)
                return False
            if not found or _serves(found[0], source.topic, chosen):
                return True
            self.check_subscribable(side, source.topic, chosen)
            removed = _manage(side, "destroyQueue", queue)
        finally:
            side.close(side.reply_timeout)
        if not removed.succeeded:
            raise IllegalStateError(
                f"The durable subscription {source.name!r} exists with another topic or selector, and is not replaced:"
                f" close its consumers, or remove it first. The broker says: {removed.result!s:.500}"
            )
        return True

    def unsubscribe(self, source: Subscription) -> dict[str, str]:
        """Return the header with the name of the subscription."""
        return {"durable-subscription-name": _name(source)}


def _name(source: Subscription) -> str:
    """Return the name with escaped dots: Artemis joins it to the client id with a dot."""
    return (source.name or "").replace("\\", "\\\\").replace(".", "\\.")


def _queue_name(source: Subscription) -> str:
    """Return the name of the broker's queue of a durable subscription."""
    return f"{quote_client_id(source.client_id or '')}.{_name(source)}"


_MANAGEMENT = {"destination": MANAGEMENT_ADDRESS, "destination-type": "MULTICAST"}  # no queue of this name is made
_ANSWERS = "jmsjca.management"
_ANSWER_SECONDS = 5.0  # after the receipt of the request, which the broker carries out before it confirms it


class _Answer(NamedTuple):
    succeeded: bool
    result: Any


def _find_queue(session: STOMPSession, name: str) -> list[dict[str, str]] | None:
    """Return a list with the row of a queue, empty without such a queue; None if the management does not answer."""
    try:
        subscription = {"id": "answers", "ack": "auto", "destination": _ANSWERS, "subscription-type": "MULTICAST"}
        session.request("SUBSCRIBE", subscription)
        answer = _manage(session, "listQueues", json.dumps(queue_filter(name)), 1, 10)
        return [row for row in json.loads(answer.result)["data"] if row["name"] == name] if answer.succeeded else None
    except (BrokerRefusedError, LookupError, TypeError, ValueError):  # no permission, or no such operation
        return None


def _manage(session: STOMPSession, operation: str, *arguments: object) -> _Answer:
    """Request an operation of the management, in a session that is subscribed to the answers.

    Raises:
        BrokerRefusedError: The user has no permission.
        ValueError: The answer is not JSON.
    """
    mark, answer = uuid.uuid4().hex, Future[Frame]()

    def on_frames(frames: Sequence[Frame]) -> None:
        """Find the answer to this request among the answers to other connections."""
        for frame in frames:
            if frame.headers.get("correlation-id") == mark and not answer.done():
                answer.set_result(frame)

    session.dispatcher.add_listener("answers", on_frames)
    requested = operation_headers("broker", operation)
    headers = {**_MANAGEMENT, **requested, "correlation-id": mark, "reply-to": _ANSWERS}
    session.request("SEND", headers, text=json.dumps(arguments))
    try:
        frame = answer.result(_ANSWER_SECONDS)
    except FutureTimeoutError:  # the management has another address
        return _Answer(succeeded=False, result=f"nothing within {_ANSWER_SECONDS:g} seconds")
    result = next(iter(json.loads(frame.body or b"[]")), None)
    return _Answer(frame.headers.get(SUCCEEDED) == "true", result)


def _serves(row: dict[str, str], topic: Destination, chosen: dict[str, str]) -> bool:
    """Return True if a queue belongs to a topic and a selector; one of AMQP clients has its filter without a prefix."""
    found, wanted = (text.removeprefix(_CONVERTED).strip() for text in (row["filter"], chosen.get("selector", "")))
    return row["address"] == topic.name and found == wanted


@lru_cache(maxsize=1000)  # once for each subscription
def _warn_of_unknown_subscription(source: Subscription) -> None:
    logger.warning(
        "The management of the broker does not tell this user about the durable subscription %r: if it exists with"
        " another topic or selector, it stays as it is. Grant the permission 'manage' on the address %s and all"
        " permissions of a subscriber on %s, or remove the subscription before you change it.",
        source.name,
        _MANAGEMENT["destination"],
        _ANSWERS,
    )


ARTEMIS = BrokerProfile(
    "ActiveMQ-Artemis",
    "STOMP",
    RELEASE,
    OVER_STOMP,
)
