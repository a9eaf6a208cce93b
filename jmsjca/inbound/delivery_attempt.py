"""A unit from its first message to its settlement: handler calls, message context and replies."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence, Sized
from dataclasses import is_dataclass
from threading import get_ident
from typing import TYPE_CHECKING, Any, Self, cast
from weakref import ref

from jmsjca import spi
from jmsjca.config import AcknowledgeMode
from jmsjca.errors import ConnectionLostError, JMSError, MessageFormatError, TransactionRolledBackError
from jmsjca.inbound.capability_check import refuse_unavailable_handling
from jmsjca.inbound.handler import is_current
from jmsjca.inbound.handler_arguments import Given
from jmsjca.messages import Message, Outcome, Settlement, TextMessage
from jmsjca.messages.delivery import bind_delivery, original_message_id
from jmsjca.messages.end_of_batch import end_of_batch_message
from jmsjca.messages.settlement import forbid_waiting
from jmsjca.outbound import Session
from jmsjca.outbound.connection_state import ConnectionContext, ConnectionState
from jmsjca.outbound.producer import message_from_body
from jmsjca.redelivery import Failure

if TYPE_CHECKING:
    from jmsjca.inbound.concurrency import Outstanding
    from jmsjca.inbound.endpoint import Endpoint

__all__ = ["Delivered", "InHand", "send_replies"]

logger = logging.getLogger("jmsjca.inbound")


class Delivered:
    """Reached through the one internal slot of a message: its unit, and what the endpoint knows of it.

    Args:
        message: What is delivered.
        hand: Its unit.
        batch_index: How many messages the batch had before it; None without batches.
        end_of_batch: True for the message that only says that the batch is over.

    Attributes:
        batch_index: As given.
    """

    __slots__ = ("_end", "_hand", "_message", "batch_index")

    def __init__(
        self, message: Message, hand: "InHand", batch_index: int | None, *, end_of_batch: bool = False
    ) -> None:
        self._message = ref(message)  # which has this one: a circle would keep its body until the collector comes
        self._hand = hand
        self.batch_index = batch_index
        self._end = end_of_batch

    @property
    def endpoint(self) -> Self:
        """This is a listener's delivery."""
        return self

    @property
    def batch_size(self) -> int | None:
        """How many messages a batch has at most; None without batches."""
        return self._hand.endpoint.terms.batch_size or None

    @property
    def rollback_only(self) -> bool:
        """True if the unit is going to roll back."""
        return self._hand.work.rollback_only

    def acknowledge(self) -> Settlement:
        """Nothing to do: the handler's return acknowledges."""
        return self._settlement()

    def set_rollback_only(self) -> None:
        """Let the unit end in a rollback."""
        self._hand.work.set_rollback_only()

    @property
    def redelivery_count(self) -> int:
        """For the how-manieth time the message is seen redelivered; 0 the first time."""
        return self._hand.endpoint.count_of(self._id)

    @property
    def redelivery_handling(self) -> str:
        """What is done with this message when it comes again."""
        return self._hand.endpoint.redelivery.policy_of(self._id).text

    @redelivery_handling.setter
    def redelivery_handling(self, text: str) -> None:
        redelivery = self._hand.endpoint.redelivery
        refuse_unavailable_handling(redelivery.policy.with_text(text))
        redelivery.set_handling(self._id, text)

    def user_rollback_data(self) -> MutableMapping[str, str]:
        """What is remembered of this message until it comes again."""
        return RollbackData(self._hand, self._id)

    @property
    def failure(self) -> Failure | None:
        """What the handler raised when it had this message before."""
        encounter = self._hand.endpoint.redelivery.find_encounter(self._id)
        return None if encounter is None else encounter.failure

    def stop_message_delivery(self, reason: str | None) -> None:
        """Stop the endpoint; this message ends as its handler decides."""
        self._hand.endpoint.request_stop(reason)

    def stats(self) -> Mapping[str, object]:
        """What the endpoint counted."""
        return self._hand.endpoint.statistics.as_map()

    @property
    def destination_name(self) -> str:
        """What the endpoint listens to."""
        return self._hand.endpoint.terms.destination.name

    @property
    def mbean_name(self) -> str | None:
        """The name under which the endpoint is managed."""
        return self._hand.endpoint.mbean_name

    @property
    def mbean(self) -> object:
        """The activation."""
        return self._hand.endpoint.activation

    def _settlement(self) -> Settlement:
        settlement = self._hand.work.settlement
        forbid_waiting(settlement, self._hand.is_asked_by_handler)
        return settlement

    @property
    def _id(self) -> str | None:
        message = self._message()
        return None if message is None or self._end else original_message_id(message)


class RollbackData(MutableMapping[str, str]):
    """The user rollback data of one message, as it is now."""

    def __init__(self, hand: "InHand", message_id: str | None) -> None:
        self._redelivery = hand.endpoint.redelivery
        self._message_id = message_id

    def _data(self) -> Mapping[str, str]:
        known = self._redelivery.find_encounter(self._message_id)
        return known.rollback_data if known is not None else {}

    def __getitem__(self, key: str) -> str:
        return self._data()[key]

    def __setitem__(self, key: str, value: str) -> None:
        self._redelivery.encounter(self._message_id).set_rollback_data(key, value)

    def __delitem__(self, key: str) -> None:
        del dict(self._data())[key]  # or KeyError
        self._redelivery.encounter(self._message_id).set_rollback_data(key, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._data())

    def __len__(self) -> int:
        return len(self._data())

    def __repr__(self) -> str:
        return f"<user rollback data of {len(self)} names>"


class InHand:
    """Hands messages to the handler, and settles them together when it is done with them. For one thread.

    Args:
        endpoint: Whose messages.
        link: Where they came from.
        outstanding: Where a place is reserved for it, if places are counted.

    Attributes:
        work: The unit.
        deliveries: What the handler was called with, or was to be.
        abandoned: True if the connection is given up while the handler is at work.
        ended: True once it is settled.
    """

    def __init__(self, endpoint: "Endpoint", link: spi.Connection, outstanding: "Outstanding | None" = None) -> None:
        self.endpoint = endpoint
        self.link = link
        self._outstanding = outstanding
        self.work = endpoint.open_unit(link)
        self.deliveries: list[spi.Delivery] = []
        self.abandoned = self.ended = False
        self._session: Session | None = None
        self._runner: object = None  # the thread, by its number, or the task that is in the handler
        self._seen = False  # if the handler saw anything

    @property
    def rolls_back(self) -> bool:
        """True if no more messages are to be handed over: the unit is going to roll back."""
        return self.work.rollback_only

    def is_asked_by_handler(self) -> bool:
        """Tell whether who asks is the handler, before it has returned."""
        runner = self._runner
        if runner is None or isinstance(runner, int):
            return runner == get_ident()
        return is_current(runner)

    def session(self) -> Session:
        """Give the session of the handler; made when asked for, as most handlers never do, and when it closed one."""
        if self._session is None or self._session.closed:
            self._session = self._make_session()
        return self._session

    def deliver(self, deliveries: Iterable[spi.Delivery]) -> None:
        """Call the handler with each message until one fails, or with all of them; then `finish`.

        Raises:
            ConnectionLostError: The connection is gone; the messages come again.
            TransactionInDoubtError: The commit may or may not have happened.
        """
        try:
            if self.endpoint.handler.whole_batches:
                self.hand_over_all(list(deliveries))
            else:
                self._hand_over_each(deliveries)
        finally:  # also when no more can be received
            self.finish()

    def hand_over(self, delivery: spi.Delivery) -> None:
        """Call the handler with a message. What it raises rolls the unit back."""
        self._guarded([delivery], lambda: self._call(*self._take([delivery])))

    def hand_over_all(self, deliveries: Sequence[spi.Delivery]) -> None:
        """Call the handler once with all messages."""
        self._guarded(deliveries, lambda: self._call(self._take(deliveries)))

    def finish(self) -> None:
        """Tell the handler that the batch is over, and settle."""
        self.end_batch()
        self.settle()

    def end_batch(self) -> None:
        """Deliver the message that says so, if the handler saw any of the batch, whatever came of them."""
        if not (self.endpoint.terms.batch_size and self._seen and self.endpoint.handler.takes_end_of_batch):
            return
        self._guarded((), lambda: self._call(self._end_of_batch()))

    def settle(self) -> None:
        """Commit or roll back.

        Raises:
            ConnectionLostError: The connection is gone; the messages come again.
            TransactionInDoubtError: The commit may or may not have happened.
        """
        try:
            if self._session is not None:
                self._session.close()
            if self.work.rollback_only:
                self.work.rollback()
            else:
                self.work.commit(confirmed=self.endpoint.terms.confirmed)
        except ConnectionLostError:
            if self.abandoned:
                logger.warning("A unit of %s ended too late; its messages come again.", self.endpoint.name)
            raise
        except TransactionRolledBackError as error:
            logger.warning("A unit of %s was rolled back; its messages come again: %s", self.endpoint.name, error)
        finally:
            self.work.mark_lost()  # unless it has ended, as it should have
            self.endpoint.settled(self, self.work.outcome or Outcome.LOST)
            if self._outstanding is not None:
                self._outstanding.release()
            self.deliveries = []  # which have their messages, and these have this: no circle stays behind

    def _make_session(self) -> Session:
        """Make the session of the handler: it sends in the unit, or at once where there are no transactions."""
        endpoint = self.endpoint
        if endpoint.terms.transacted:
            return Session.for_delivery(self.link, self.work, endpoint.limits, endpoint.hooks)
        ground = ConnectionContext(self.link, endpoint.limits, ConnectionState(started=True), hooks=endpoint.hooks)
        return Session(ground, transacted=False, acknowledge_mode=AcknowledgeMode.AUTO)

    def _hand_over_each(self, deliveries: Iterable[spi.Delivery]) -> None:
        for delivery in deliveries:
            self.hand_over(delivery)
            if self.rolls_back:
                return

    def _guarded(self, deliveries: Sequence[spi.Delivery], act: Callable[[], None]) -> None:
        before = len(self.deliveries)
        with self.endpoint.statistics.delivering(len(deliveries) or 1):
            try:
                act()
            except BaseException as error:  # noqa: BLE001  # also SystemExit: a handler ends its delivery, no more
                begun = len(self.deliveries) > before
                self.endpoint.put_off(() if begun else deliveries)
                self._failed(error, deliveries if begun else ())

    def _take(self, deliveries: Sequence[spi.Delivery]) -> list[Message]:
        """Make deliveries part of the unit, all of them before one is looked at: what goes back goes back together."""
        self.work.unit.take(deliveries)
        before = len(self.deliveries)
        self.endpoint.begin(self, deliveries)
        return [self._bound(delivery.message, index) for index, delivery in enumerate(deliveries, before)]

    def _bound(self, message: Message, index: int) -> Message:
        bind_delivery(message, self._context(message, index))
        return message

    def _end_of_batch(self) -> Message:
        message = end_of_batch_message()
        bind_delivery(message, self._context(message, len(self.deliveries), end_of_batch=True))
        return message

    def _context(self, message: Message, index: int, *, end_of_batch: bool = False) -> Delivered:
        return Delivered(message, self, self._batch_index(index), end_of_batch=end_of_batch)

    def _batch_index(self, index: int) -> int | None:
        return index if self.endpoint.terms.batch_size else None

    def _call(self, content: Message | list[Message]) -> None:
        self._seen, self._runner = True, get_ident()
        try:
            result = self.endpoint.call(Given(content, self.session, self._run_by))
        finally:
            self._runner = None
        if result is not None and not self.rolls_back:
            send_replies(self.session, content, result)

    def _run_by(self, task: object) -> None:
        self._runner = task

    def _failed(self, error: BaseException, deliveries: Sequence[spi.Delivery]) -> None:
        if self.work.outcome is None:
            self.work.set_rollback_only()
        if isinstance(error, JMSError):
            logger.error("A message to %s was rolled back: %s", self.endpoint.name, error)
        else:
            logger.error(
                "The handler of %s failed; its message is rolled back and comes again.",
                self.endpoint.name,
                exc_info=error,
            )
        self.endpoint.remember_failure(deliveries, error)


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
    reply.correlation_id = request.correlation_id or original_message_id(request)
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
    return message_from_body(result)
