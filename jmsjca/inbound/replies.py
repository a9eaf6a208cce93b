"""What a handler returns goes to whoever asked."""

from dataclasses import is_dataclass
from typing import Any

from jmsjca.messages import Message, TextMessage
from jmsjca.outbound import Session
from jmsjca.outbound.jms_producer import message_of

__all__ = ["send_reply"]


def send_reply(session: Session, request: Message, result: object) -> None:
    """Send what a handler returned to the request's ``reply_to``, in the delivery's unit.

    The reply's correlation id is that of the request, or else the request's message id (JMS 3.1, section 3.4.5); its
    priority and delivery mode are those of the request. Nothing is sent if the handler returned None, or the request
    asks for no reply.

    Args:
        session: The delivery's session.
        request: What was delivered.
        result: A message, or what one is made of: text, bytes, a mapping, a pydantic model or a dataclass (as JSON).

    Raises:
        MessageFormatError: No message can be made of the result.
        NotSupportedError: The broker cannot acknowledge the request and send the reply together.
    """
    if result is None or request.reply_to is None:
        return
    reply = result if isinstance(result, Message) else _message_of(result)
    reply.correlation_id = request.correlation_id or request.message_id
    session.create_producer(request.reply_to).send(
        reply, priority=request.priority, delivery_mode=request.delivery_mode
    )


def _message_of(result: object) -> Message:
    if is_dataclass(result) or hasattr(type(result), "model_dump_json"):
        from pydantic import TypeAdapter  # noqa: PLC0415  # who returns such a thing has it

        adapter: TypeAdapter[Any] = TypeAdapter(type(result))
        return TextMessage(adapter.dump_json(result).decode())
    return message_of(result)
