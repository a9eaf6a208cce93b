"""Changes of messages: replay, move, copy, edit and delete, each message in one transaction."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from jmsjca.arguments import did_you_mean
from jmsjca.destinations import Destination, Queue
from jmsjca.errors import InvalidArgumentError, MessageFormatError, NotSupportedError, excerpt
from jmsjca.management.dead_letter import original_expiration, replay_copy
from jmsjca.messages.bytes_and_stream import BytesMessage
from jmsjca.messages.message import Message, TextMessage
from jmsjca.messages.properties import DUPLICATE_ID, PropertyValue
from jmsjca.outbound.session import Session
from jmsjca.redelivery.moved_copy import plain_copy, remaining_life

__all__ = [
    "Change",
    "Changes",
    "Edit",
    "Handle",
    "carry_out",
    "copy_message",
    "delete",
    "edited",
    "move",
    "paced",
    "parse_property",
    "replay",
    "selector_of_ids",
    "text_message",
]

_BATCH = 50  # ids in the selector of one consumer
_PATIENCE = 5.0  # seconds to wait for a browsed message; after that another consumer has it

Handle = Callable[[Session, Message, Destination | None], bool]
"""Sends the message that takes the place of a received one, if any; the commit follows.

Returns True if the time to live of the message is over, so that what it has sent does not expire."""


@dataclass(frozen=True, slots=True)
class Change:
    """The result for one message of a replay, a move, a copy, an edit or a deletion.

    Attributes:
        message_id: Id of the message.
        target: Destination that the message is sent to; None if it is deleted.
        outcome: "done"; "planned" in a dry run; "gone" if another consumer received the message; or "skipped" if the
            message has no id, so that it cannot be selected.
        replays: Number of earlier replays of a dead letter.
        expired: True if the message has outlived its time to live. The message sent in its place does not expire.
    """

    message_id: str
    target: Destination | None
    outcome: str
    replays: int = 0
    expired: bool = False


class Changes(Iterator[Change]):
    """The changes of the messages of a queue. Each change is carried out when it is read.

    Args:
        planned: The planned changes.
        changes: The changes.

    Attributes:
        planned: The planned changes.
        total: Number of changes.
    """

    def __init__(self, planned: Sequence[Change], changes: Iterator[Change]) -> None:
        self.planned = planned
        self.total = len(planned)
        self._changes = changes

    def __next__(self) -> Change:
        """Carry out the next change, commit it, and return it."""
        return next(self._changes)


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of the content of a message.

    Attributes:
        body: The new text of a text message, or of a bytes message in UTF-8; None keeps the body.
        properties: Properties to set.
        removed: Names of properties to remove.
    """

    body: str | None = None
    properties: Mapping[str, PropertyValue] = field(default_factory=dict[str, PropertyValue])
    removed: Sequence[str] = ()

    def check(self, message: Message) -> None:
        """Check that the edit fits a message. The message is not changed.

        Raises:
            InvalidArgumentError: The message lacks a property that the edit removes; or the edit has a body, and the
                message's body is not text.
        """
        if self.body is not None:
            _set_text(plain_copy(message), self.body)
        for name in self.removed:
            if name not in message.properties:
                raise InvalidArgumentError(
                    f"The message {message.message_id} has no property {excerpt(name)!r} to remove "
                    f"{_nearest(name, message)}. Nothing was changed."
                )

    def apply(self, copy: Message) -> None:
        """Apply the edit to a copy before it is sent.

        Raises:
            InvalidArgumentError: The edit has a body, and the body of the copy is not text.
            MessageFormatError: The name or the value of a property is invalid.
        """
        if self.body is not None:
            _set_text(copy, self.body)
        for name in self.removed:
            copy.properties.pop(name, None)
        copy.properties.update(self.properties)


def parse_property(text: str) -> tuple[str, str]:
    """Parse ``NAME=VALUE``.

    Raises:
        InvalidArgumentError: The text has another form.
    """
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise InvalidArgumentError(f"The property {text!r:.100} must be NAME=VALUE.")
    return name, value


def text_message(body: str, properties: Mapping[str, object]) -> TextMessage:
    """Build a text message from command arguments.

    Raises:
        InvalidArgumentError: A property is not valid.
    """
    try:
        return TextMessage(body, properties=properties)
    except MessageFormatError as error:
        raise InvalidArgumentError(str(error)) from error


def _nearest(name: str, message: Message) -> str:
    known = {each.lower(): excerpt(each) for each in message.properties}
    return did_you_mean(name.lower(), known) if known else "(it has none)"


def _set_text(copy: Message, body: str) -> None:
    if isinstance(copy, BytesMessage):
        copy.body = body.encode()
    elif isinstance(copy, TextMessage):
        copy.body = body
    else:
        raise InvalidArgumentError(
            f"The body of a {type(copy).__name__} cannot be replaced by a text: edit its properties only, or send a "
            "new message. Nothing was changed."
        )


def selector_of_ids(ids: Iterable[str]) -> str:
    """Return a selector for messages with these ids; there must be at least one id."""
    quoted = ("'" + each.replace("'", "''") + "'" for each in ids)
    return f"JMSMessageID IN ({', '.join(quoted)})"


def carry_out(session: Session, queue: str, plan: Sequence[Change], handle: Handle) -> Iterator[Change]:
    """Carry out planned changes. Each change is carried out when its result is read.

    Args:
        session: A transacted session.
        queue: Name of the queue with the messages.
        plan: The planned changes.
        handle: Sends the replacement of a received message.

    Yields:
        Each change after its commit.
    """
    yield from (replace(each, outcome="skipped") for each in plan if not each.message_id)
    changes = [each for each in plan if each.message_id]
    for start in range(0, len(changes), _BATCH):
        yield from _carry_out_batch(session, queue, changes[start : start + _BATCH], handle)


def paced(
    changes: Iterator[Change],
    rate: float | None,
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[Change]:
    """Yield changes, limited to a number per second.

    Args:
        changes: The changes. Each is carried out when it is read.
        rate: Maximum number per second; None for no limit.
        clock: Source of time, in seconds.
        pause: Waits a number of seconds.
    """
    return changes if rate is None else _paced(changes, 1 / rate, clock, pause)


def _paced(
    changes: Iterator[Change], interval: float, clock: Callable[[], float], pause: Callable[[float], None]
) -> Iterator[Change]:
    due = clock()
    while (change := next(changes, None)) is not None:
        yield change
        due += interval
        if (left := due - clock()) > 0:
            pause(left)
        else:
            due = clock()  # a slow broker does not cause a burst later


def replay(session: Session, message: Message, to: Destination | None) -> bool:
    """Send the copy of a dead letter, without the record of its failure and with its remaining time to live."""
    return _send(session, replay_copy(message), to, original_expiration(message))


def copy_message(session: Session, message: Message, to: Destination | None) -> bool:
    """Send the copy of a message with all its properties and its remaining time to live.

    If the time to live is over, the copy does not expire: an operator who moves the message wants to keep it.
    """
    copy = plain_copy(message)
    copy.properties.pop(DUPLICATE_ID, None)  # a broker that knows the id would drop the message
    return _send(session, copy, to, message.expiration)


move = copy_message


def delete(session: Session, message: Message, to: Destination | None) -> bool:
    """Send nothing: the commit acknowledges the message."""
    del session, message, to
    return False


def edited(edit: Edit, *, as_replay: bool) -> Handle:
    """Return a handle that sends an edited copy.

    Args:
        edit: The edit.
        as_replay: True to send the copy of a replay, without the record of the failure.
    """

    def handle(session: Session, message: Message, to: Destination | None) -> bool:
        """Send the edited copy."""
        copy = replay_copy(message) if as_replay else plain_copy(message)
        copy.properties.pop(DUPLICATE_ID, None)
        edit.apply(copy)
        return _send(session, copy, to, original_expiration(message) if as_replay else message.expiration)

    return handle


def _carry_out_batch(session: Session, queue: str, plan: Sequence[Change], handle: Handle) -> Iterator[Change]:
    planned = {each.message_id: each for each in plan}
    left = [each.message_id for each in plan]  # several messages may have the same id
    with session.create_consumer(Queue(queue), selector_of_ids(planned)) as consumer:
        while left and (message := consumer.receive(_PATIENCE)) is not None:
            change = planned.get(message.message_id or "")
            if change is None:
                session.rollback()
                raise NotSupportedError(
                    f"The broker takes the id {excerpt(message.message_id)} of another message in {queue} for one of"
                    " the ids to change, and delivers that message first. Select by a property."
                )
            expired = handle(session, message, change.target)
            session.commit()
            left = _without(left, change.message_id)
            yield replace(change, outcome="done", expired=expired)
    yield from (replace(planned[each], outcome="gone") for each in left)


def _without(ids: list[str], one: str) -> list[str]:
    """Return the ids without the first one equal to ``one``."""
    place = ids.index(one) if one in ids else len(ids)
    return ids[:place] + ids[place + 1 :]


def _send(session: Session, copy: Message, to: Destination | None, expiration: datetime | None) -> bool:
    """Send a copy with the remaining time to live. If it is over, the copy does not expire; then return True."""
    left = remaining_life(expiration)
    session.create_producer(to).send(
        copy, delivery_mode=copy.delivery_mode, priority=copy.priority, time_to_live=max(left, 0.0)
    )
    return left < 0
