"""What a handler returns goes to whoever asked."""

from collections.abc import Callable, Sequence, Sized
from dataclasses import is_dataclass
from typing import Any, cast

from jmsjca.errors import MessageFormatError
from jmsjca.messages import Message, Settlement, TextMessage
from jmsjca.outbound import Session
from jmsjca.outbound.jms_producer import message_of

__all__ = ["send_replies"]


def send_replies(open_session: Callable[[], Session], content: Message | Sequence[Message], result: object) -> None:
    """Send what a handler returned to whoever wants a reply, in the delivery's unit.

    Args:
        open_session: Gives the delivery's session.
        content: What was delivered.
        result: A reply, or None, or what ``acknowledge()`` returned, which is none; for a whole batch a list or a
            tuple with a reply for each message, None for those without one.

    Raises:
        MessageFormatError: No message can be made of a reply, or there is not one for each message of the batch.
        NotSupportedError: The broker cannot acknowledge the requests and send the replies together.
    """
    requests = [content] if isinstance(content, Message) else content
    if result is None or isinstance(result, Settlement) or all(request.reply_to is None for request in requests):
        return
    results = [result] if isinstance(content, Message) else _one_each(result, len(requests))
    for request, reply in zip(requests, results, strict=True):
        _send_reply(open_session(), request, reply)


def _one_each(result: object, count: int) -> Sequence[object]:
    results = cast("Sequence[object]", result)
    if isinstance(result, list | tuple) and len(results) == count:
        return results
    raise MessageFormatError(
        f"A handler of whole batches returns None, or a list with a reply or None for each message. There were {count} "
        f"messages, and it returned {_told(results)}."
    )


def _send_reply(session: Session, request: Message, result: object) -> None:
    """Send a reply to the request's ``reply_to``.

    The reply's correlation id is that of the request, or else the request's message id (JMS 3.1, section 3.4.5); its
    priority and delivery mode are those of the request. It may be a message, or what one is made of: text, bytes, a
    mapping, a pydantic model or a dataclass (as JSON).
    """
    if result is None or request.reply_to is None:
        return
    reply = result if isinstance(result, Message) else _message_of(result)
    reply.correlation_id = request.correlation_id or request.delivered_id
    session.create_producer(request.reply_to).send(
        reply, priority=request.priority, delivery_mode=request.delivery_mode
    )


def _told(result: object) -> str:
    kind = type(result).__name__
    return f"a {kind} of {len(result)}" if isinstance(result, Sized) else f"a {kind}"


def _message_of(result: object) -> Message:
    if is_dataclass(result) or hasattr(type(result), "model_dump_json"):
        from pydantic import TypeAdapter  # noqa: PLC0415  # who returns such a thing has it

        adapter: TypeAdapter[Any] = TypeAdapter(type(result))
        return TextMessage(adapter.dump_json(result).decode())
    return message_of(result)
