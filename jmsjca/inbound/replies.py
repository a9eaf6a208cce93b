"""Replies: sends the value that a handler returned to the sender of the request."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence, Sized
from typing import cast

from jmsjca.errors import ConfigurationError, InvalidDestinationError, MessageFormatError
from jmsjca.messages.converters import Converters
from jmsjca.messages.delivery import original_message_id
from jmsjca.messages.message import Message
from jmsjca.messages.settlement import Settlement
from jmsjca.outbound.session import Session

__all__ = ["send_replies"]


def send_replies(
    open_session: Callable[[], Session],
    content: Message | Sequence[Message],
    result: object,
    converters: Converters,
    on_dropped: Callable[[Message, InvalidDestinationError], None],
) -> None:
    """Send the values that a handler returned as replies, in the unit of the delivery.

    Args:
        open_session: Returns the session of the delivery.
        content: The delivered message, or the messages of the batch.
        result: The reply; None for no reply, and the result of ``acknowledge()`` counts as None. For a whole batch a
            list
            or a tuple with one reply per message, None for messages without one.
        converters: Converts the replies to messages.
        on_dropped: Called with a request, and with the error, if the temporary destination of its replies is gone.

    Raises:
        ConfigurationError: The result is a generator or an awaitable, so its work is not done.
        MessageFormatError: A reply cannot be converted to a message, or the number of replies is not that of the
            messages.
        NotSupportedError: The broker cannot acknowledge the requests and send the replies in one transaction.
    """
    if result is None or isinstance(result, Settlement):
        return
    _check_finished(result)
    requests = [content] if isinstance(content, Message) else content
    if all(request.reply_to is None for request in requests):
        return
    results = [result] if isinstance(content, Message) else _one_per_message(result, len(requests))
    for request, reply in zip(requests, results, strict=True):
        try:
            _send_reply(open_session(), request, reply, converters)
        except InvalidDestinationError as error:
            if request.reply_to is None or not request.reply_to.temporary:
                raise
            on_dropped(request, error)


def _check_finished(result: object) -> None:
    """Raise an error for a result that nothing has awaited or iterated over, so that its message is not acknowledged.

    Raises:
        ConfigurationError: It is a generator or an awaitable, such as the coroutine that a coroutine has returned.
    """
    if isinstance(result, Awaitable | Generator | AsyncGenerator):
        raise ConfigurationError(
            f"The handler returned a {type(cast('object', result)).__name__}, whose work is not done, as nothing awaits"
            " it or iterates over it. Await it in a handler that is declared with 'async def', or return what it makes."
        )


def _one_per_message(result: object, count: int) -> Sequence[object]:
    results = cast("Sequence[object]", result)
    if isinstance(result, list | tuple) and len(results) == count:
        return results
    raise MessageFormatError(
        f"A handler of whole batches returns None, or a list with a reply or None for each message. There were {count} "
        f"messages, and it returned {_describe(results)}."
    )


def _send_reply(session: Session, request: Message, result: object, converters: Converters) -> None:
    """Send a reply to the request's ``reply_to``.

    The reply's correlation id is that of the request, or else the request's message id (JMS 3.1, section 3.4.5); its
    priority and delivery mode are those of the request. ``result`` is a message, or a body that one is created from.
    """
    if result is None or request.reply_to is None:
        return
    reply = converters.to_message(result)
    reply.correlation_id = request.correlation_id or original_message_id(request)
    session.create_producer(request.reply_to).send(
        reply, priority=request.priority, delivery_mode=request.delivery_mode
    )


def _describe(result: object) -> str:
    kind = type(result).__name__
    return f"a {kind} of {len(result)}" if isinstance(result, Sized) else f"a {kind}"
