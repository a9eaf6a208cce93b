"""Senders and publishers: they send messages from any thread, over pooled connections."""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from functools import lru_cache, partial, wraps
from inspect import iscoroutinefunction
from typing import Any, Generic, TypeVar, Unpack, cast, get_type_hints

from jmsjca.arguments import MAX_INT, SECONDS, TEXT_OR_NONE, TIMEOUT, Constraint
from jmsjca.config.limits import AcknowledgeMode
from jmsjca.destinations import Destination, check_destination, named_destination
from jmsjca.errors import (
    ArgumentTypeError,
    ConnectionLostError,
    InvalidArgumentError,
    JMSError,
    ReplyTimeoutError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.log_records import get_logger
from jmsjca.messages.converters import Converters
from jmsjca.messages.message import Message
from jmsjca.outbound.consumer import MessageConsumer, limit_prefetch
from jmsjca.outbound.delivery_sends import DeliverySends, SendScope, current_delivery
from jmsjca.outbound.pool import ConnectionPool, SharedConnections, Use
from jmsjca.outbound.pooled_connection import PooledConnection
from jmsjca.outbound.producer import SendOptions, check_options, delivery_fields, set_headers
from jmsjca.outbound.requestor import Requestor
from jmsjca.outbound.session import Session

__all__ = [
    "DeclaresPublishers",
    "Publisher",
    "SendOptions",
    "Sender",
    "SendsMessages",
]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_DUPLICATE_ID = "_AMQ_DUPL_ID"
_LONGEST_PAUSE = 5.0  # seconds
_NEXT_MESSAGE = 0.1  # seconds
_BODIES = Constraint[Iterable[object]](
    "a list of bodies, one for each message, while send(…) takes one body",
    Iterable,
    fits=lambda value: not isinstance(value, str | bytes | Mapping),
    misfit=ArgumentTypeError,
    secret=True,
)
_LIMIT = Constraint[int](f"a number of messages from 1 to {MAX_INT}", int, within=(1, MAX_INT))


class SendsMessages(ABC):
    """The methods of a `Sender`, for the adapter and for connection factories.

    In a handler of the adapter, messages to the broker of the listener are part of the unit of the delivery: they are
    sent when it commits, and not at all if it is rolled back. `request` always sends at once.
    """

    @property
    @abstractmethod
    def sender(self) -> "Sender":
        """The sender."""
        ...

    def send(
        self,
        destination: str | Destination,
        body: object,
        *,
        duplicate_id: str | None = None,
        **options: Unpack[SendOptions],
    ) -> Message:
        """Send a message, from any thread, and wait until the broker has it: see `Sender.send`.

        Example: ``adapter.send("orders", Order("pear"), priority=7, properties={"region": "EU"})``.
        """
        return self.sender.send(destination, body, duplicate_id=duplicate_id, **options)

    def send_many(
        self,
        destination: str | Destination,
        bodies: Iterable[object],
        *,
        duplicate_id: str | None = None,
        **options: Unpack[SendOptions],
    ) -> list[Message]:
        """Send messages as one unit: see `Sender.send_many`."""
        return self.sender.send_many(destination, bodies, duplicate_id=duplicate_id, **options)

    async def send_async(
        self,
        destination: str | Destination,
        body: object,
        *,
        duplicate_id: str | None = None,
        **options: Unpack[SendOptions],
    ) -> Message:
        """Send a message from a coroutine: see `Sender.send_async`."""
        return await self.sender.send_async(destination, body, duplicate_id=duplicate_id, **options)

    def request(
        self,
        destination: str | Destination,
        body: object,
        *,
        timeout: float | timedelta = 5.0,
        **options: Unpack[SendOptions],
    ) -> Message:
        """Send a request at once, also in a handler, and return the reply to it: see `Sender.request`."""
        return self.sender.request(destination, body, timeout=timeout, **options)

    def receive(
        self, destination: str | Destination, timeout: float | timedelta | None = 5.0, *, selector: str | None = None
    ) -> Message | None:
        """Receive a message and settle it; return None if no message arrives in time: see `Sender.receive`."""
        return self.sender.receive(destination, timeout, selector=selector)

    async def receive_async(
        self,
        destination: str | Destination,
        timeout: float | timedelta | None = 5.0,  # noqa: ASYNC109  # as the blocking method
        *,
        selector: str | None = None,
    ) -> Message | None:
        """Receive a message from a coroutine: see `Sender.receive_async`."""
        return await self.sender.receive_async(destination, timeout, selector=selector)

    def receive_many(
        self,
        destination: str | Destination,
        limit: int,
        timeout: float | timedelta | None = 5.0,
        *,
        selector: str | None = None,
    ) -> AbstractContextManager[list[Message]]:
        """Receive messages for a block. The end of the block settles them: see `Sender.receive_many`.

        Example: ``with adapter.receive_many("orders", 100, timeout=5) as messages: save(messages)``.
        """
        return self.sender.receive_many(destination, limit, timeout, selector=selector)


class Sender:
    """Sends messages over a pool of connections. Thread-safe; `send_async` is for coroutines.

    In a handler of the same scope, messages join the unit of the delivery: they are sent when it commits.

    A send is repeated, with growing pauses, while the broker cannot be reached and as long as nothing was written. If
    the outcome is in doubt, it is repeated only if the broker removes duplicates, and the message has a duplicate id.

    Args:
        pool: The pool. The sender does not close it.
        retry_timeout: Seconds after which a send is not repeated any more; 30 by default, 0 never repeats.
        converters: Converts bodies to messages; None for `Converters.default`.
        scope: Messages join the unit of a delivery in handlers of this scope; None to send at once in any handler.
        receiving: The pool of connections that receive, best without prefetching; None for ``pool``.

    Raises:
        InvalidArgumentError: The retry timeout is not a number of seconds, or is negative.
    """

    def __init__(
        self,
        pool: ConnectionPool,
        *,
        retry_timeout: float | timedelta = 30.0,
        converters: Converters | None = None,
        scope: SendScope | None = None,
        receiving: ConnectionPool | None = None,
    ) -> None:
        retry_timeout = SECONDS("retry_timeout", retry_timeout)
        self._pool = pool
        self._receiving = receiving or pool
        self._shared = SharedConnections(pool)
        self._retry_timeout = retry_timeout
        self._converters = converters or Converters.default()
        self._scope = scope

    def send(
        self,
        destination: str | Destination,
        body: object,
        *,
        duplicate_id: str | None = None,
        **options: Unpack[SendOptions],
    ) -> Message:
        """Send a message, and wait until the broker has it; in a handler, add it to the unit of the delivery.

        Args:
            destination: A queue's name, ``queue:name`` or ``topic:name``, or a `Queue` or a `Topic`.
            body: Text, bytes, or a value that is sent as JSON text: a mapping, a list, a scalar, a pydantic model, a
                dataclass or a msgspec Struct; an object of a registered class (see `Converters`); or a message.
            duplicate_id: An id by which the broker recognises the message if it is sent again (capability
                ``duplicate_detection``); "" for a new one. With it, a send in doubt is repeated.
            **options: See `SendOptions`.

        Returns:
            The message, with its headers set.

        Raises:
            InvalidArgumentError: There is no such option.
            TransactionInDoubtError: The message may or may not have been sent.
            JMSError: The message was not sent.
        """
        (message,) = self._send_all(self._delivery(), destination, [body], duplicate_id, options)
        return message

    def send_many(
        self,
        destination: str | Destination,
        bodies: Iterable[object],
        *,
        duplicate_id: str | None = None,
        **options: Unpack[SendOptions],
    ) -> list[Message]:
        """Send messages as one unit: all or none, where the broker has transactions; elsewhere one after the other.

        In a handler they join the unit of the delivery. If one of them cannot, the unit is rolled back.

        Args:
            destination: As for `send`.
            bodies: As ``body`` of `send`.
            duplicate_id: As for `send`; each message gets its position as a suffix.
            **options: See `SendOptions`; they apply to each message.

        Returns:
            The messages.

        Raises:
            TransactionInDoubtError: The messages may or may not have been sent.
            InvalidArgumentError: There is no such option, or a message object stands twice in the bodies.
            JMSError: No message was sent; without transactions, the last ones were not.
        """
        check_options("A send", options, SendOptions)
        return self._send_all(self._delivery(), destination, _BODIES("bodies", bodies), duplicate_id, options)

    def _delivery(self) -> DeliverySends | None:
        """Return the delivery that the caller's sends join; None to send at once."""
        delivery = current_delivery.get()
        if self._scope is None or delivery is None or delivery.scope != self._scope or not delivery.is_open:
            return None
        return delivery

    def _send_all(
        self,
        delivery: DeliverySends | None,
        destination: str | Destination,
        bodies: Iterable[object],
        duplicate_id: str | None,
        options: SendOptions,
    ) -> list[Message]:
        to = _named(destination) if isinstance(destination, str) else _destination(destination)
        messages = [self._converters.to_message(body) for body in bodies]
        given: dict[str, Any] = {}
        if options:
            check_options("A send", options, SendOptions)
            given = delivery_fields(options)
            for message in messages:
                set_headers(message, options)
        if len(messages) > 1 and len({id(message) for message in messages}) < len(messages):
            raise InvalidArgumentError("A message stands twice in bodies: send copies, each of which gets its own id.")
        if duplicate_id is not None:
            _set_duplicate_ids(messages, duplicate_id or uuid.uuid4().hex)
        if delivery is not None:
            delivery.send(to, messages, given)
            return messages
        sending = _Sending(self._pool, self._shared, to, messages, given, has_ids=duplicate_id is not None)
        try:
            sending.attempt()
        except JMSError as error:
            if not (self._retry_timeout and sending.is_repeatable(error)):
                raise
            logger.warning("A send to %s failed; it is repeated for at most %g s: %s", to, self._retry_timeout, error)
            self._repeat(sending)
        return messages

    async def send_async(
        self,
        destination: str | Destination,
        body: object,
        *,
        duplicate_id: str | None = None,
        **options: Unpack[SendOptions],
    ) -> Message:
        """Send a message as `send` does, on another thread. If the await is cancelled, the send goes on.

        In a handler it goes on until the handler has returned, as later the message could not join the unit.

        Args:
            destination: As for `send`.
            body: As for `send`.
            duplicate_id: As for `send`.
            **options: See `SendOptions`.

        Raises:
            JMSError: As `send`.
        """
        import asyncio  # programs without coroutines need not load it

        send = partial(self._send_all, self._delivery(), destination, [body], duplicate_id, options)
        (message,) = await asyncio.to_thread(send)
        return message

    def request(
        self,
        destination: str | Destination,
        body: object,
        *,
        timeout: float | timedelta = 5.0,
        **options: Unpack[SendOptions],
    ) -> Message:
        """Send a request, and wait for its reply. Each call creates a temporary queue for the reply.

        The request is always sent at once, also in a handler. In the unit of the delivery the broker would get the
        request only after the handler has returned, so the handler could not wait for the reply.

        Args:
            destination: As for `send`.
            body: As for `send`.
            timeout: Seconds to wait for the reply.
            **options: See `SendOptions`.

        Returns:
            The reply.

        Raises:
            InvalidArgumentError: There is no such option.
            ReplyTimeoutError: No reply arrived in time. The request may have been processed.
            JMSError: The request was not sent, or the reply cannot be decoded.
        """
        check_options("A send", options, SendOptions)
        to, message = _destination(destination), self._converters.to_message(body)
        set_headers(message, options)
        given = delivery_fields(options)
        seconds = TIMEOUT("timeout", timeout)

        def exchange() -> Message | None:
            """Exchange one request over a borrowed connection."""
            with self._pool.session() as session, Requestor(session, to) as requestor:
                for name, value in given.items():
                    setattr(requestor.producer, name, value)
                return requestor.request(message, seconds)

        reply = exchange()
        if reply is None:
            raise ReplyTimeoutError(f"No reply to the request to {to} arrived within {seconds} s.")
        return reply

    def receive(
        self, destination: str | Destination, timeout: float | timedelta | None = 5.0, *, selector: str | None = None
    ) -> Message | None:
        """Receive a message, which is acknowledged when this returns. It never joins the unit of a delivery.

        A consumer is opened for each call, so a topic gives only messages that are sent during the call. For a steady
        flow of messages use a listener.

        Args:
            destination: As for `send`.
            timeout: Seconds to wait for a message; None waits forever, 0 does not wait.
            selector: Only a matching message is received.

        Returns:
            The message; None if no message arrived in time.

        Raises:
            MessageFormatError: The message cannot be decoded. It stays in its queue.
            InvalidArgumentError: The timeout is not a number of seconds, or is negative.
            JMSError: No message is received. If the connection is lost, it may be acknowledged, or is redelivered.
        """
        with self._receiver(destination, selector, AcknowledgeMode.AUTO) as (_, consumer):
            limit_prefetch(consumer, 1)
            return consumer.receive(timeout)

    async def receive_async(
        self,
        destination: str | Destination,
        timeout: float | timedelta | None = 5.0,  # noqa: ASYNC109  # as the blocking method
        *,
        selector: str | None = None,
    ) -> Message | None:
        """Receive a message as `receive` does, on another thread.

        If the await is cancelled, the call goes on until its timeout, and a message that it receives is lost.

        Raises:
            JMSError: As `receive`.
        """
        import asyncio  # programs without coroutines need not load it

        return await asyncio.to_thread(self.receive, destination, timeout, selector=selector)

    @contextmanager
    def receive_many(
        self,
        destination: str | Destination,
        limit: int,
        timeout: float | timedelta | None = 5.0,
        *,
        selector: str | None = None,
    ) -> Generator[list[Message]]:
        """Receive messages for a block. Its end acknowledges them; an exception returns them to the queue.

        Args:
            destination: As for `receive`.
            limit: The maximum number of messages.
            timeout: Seconds to wait for the first message; None waits forever, 0 does not wait. Each further one is
                waited for at most 0.1 seconds.
            selector: Only matching messages are received.

        Yields:
            The messages; an empty list if no message arrived in time.

        Raises:
            InvalidArgumentError: The limit or the timeout is not a number, or is out of range.
            TransactionInDoubtError: The messages may or may not be acknowledged.
            JMSError: No message is acknowledged. The broker redelivers the received messages.
        """
        _LIMIT("limit", limit)
        with self._receiver(destination, selector, AcknowledgeMode.CLIENT) as (session, consumer):
            messages = list[Message]()
            while len(messages) < limit:
                limit_prefetch(consumer, limit - len(messages))
                message = consumer.receive(min(timeout or 0, _NEXT_MESSAGE) if messages else timeout)
                if message is None:
                    break
                messages.append(message)
            yield messages
            if session.transacted:
                session.commit()
            else:
                session.acknowledge()

    @contextmanager
    def _receiver(
        self, destination: str | Destination, selector: str | None, mode: AcknowledgeMode
    ) -> Generator[tuple[Session, MessageConsumer]]:
        """Borrow a consumer for the block. Its session is transacted where CLIENT is asked for and the broker can."""
        source = _destination(destination)
        with self._receiving.connection() as connection:
            transacted = mode is AcknowledgeMode.CLIENT and connection.capabilities.atomic
            try:
                with connection.create_session(transacted, mode) as session:
                    yield session, session.create_consumer(source, selector)
            except ConnectionLostError:
                connection.mark_failed()
                raise

    def _repeat(self, sending: "_Sending") -> None:
        """Repeat a send after an error, as long as that is safe."""
        import tenacity  # slow to import, and rarely needed

        attempts = tenacity.Retrying(
            retry=tenacity.retry_if_exception(sending.is_repeatable),
            wait=tenacity.wait_random_exponential(0.1, max=_LONGEST_PAUSE),
            stop=tenacity.stop_after_delay(self._retry_timeout),
            reraise=True,
        )
        try:
            attempts(sending.attempt)
        except JMSError as error:
            if sending.doubt not in (None, error):
                raise sending.doubt from error
            raise


class _Sending(Use):
    """Messages on their way: how many are sent, and whether an attempt is in doubt.

    Args:
        pool: The pool.
        shared: The connections of the pool for single messages.
        to: The destination.
        messages: The messages.
        given: The options of the producer.
        has_ids: True if each message has a duplicate id.

    Attributes:
        doubt: The error of the latest attempt in doubt; None without one.
    """

    doubt: TransactionInDoubtError | None = None
    _sent = 0
    _removes_duplicates = _lost_unit = False

    def __init__(
        self,
        pool: ConnectionPool,
        shared: SharedConnections,
        to: Destination,
        messages: Sequence[Message],
        given: Mapping[str, Any],
        *,
        has_ids: bool,
    ) -> None:
        self._pool = pool
        self._shared = shared
        self._to = to
        self._messages = messages
        self._given = given
        self._has_ids = has_ids

    def attempt(self) -> None:
        """Send the messages that are not sent yet.

        Raises:
            TransactionInDoubtError: This attempt is in doubt.
            JMSError: The messages of this attempt are not sent. Messages of an earlier attempt may be in doubt.
        """
        try:
            if len(self._messages) - self._sent == 1:
                self._send_one()
            else:
                with self._pool.connection() as connection:
                    self._send_many(connection)
        except TransactionInDoubtError as error:
            self.doubt = error
            raise

    def _send_one(self) -> None:
        try:
            connection = self._shared.join_or_borrow(self)
            if self._has_ids:
                self._removes_duplicates = connection.capabilities.duplicate_detection
            connection.send(self._messages[-1], self._to, self._given)
            self._sent += 1
        finally:
            try:
                self._shared.leave(self)
            except BaseException:  # again, if a signal handler interrupted its first step
                self._shared.leave(self)
                raise

    def _send_many(self, connection: PooledConnection) -> None:
        capabilities = connection.capabilities
        self._removes_duplicates = capabilities.duplicate_detection
        try:
            session = connection.create_session(capabilities.atomic)
            producer = session.create_producer(self._to)
            for message in self._messages[self._sent :]:
                producer.send(message, **self._given)
                self._sent += not session.transacted
            if session.transacted:
                session.commit()
        except ConnectionLostError:
            connection.mark_failed()
            raise
        except TransactionRolledBackError as error:  # with its connection, as in a fail-over: another one can send it
            self._lost_unit = connection.failed or isinstance(error.__cause__, ConnectionLostError)
            raise
        self._sent = len(self._messages)

    def is_repeatable(self, error: BaseException) -> bool:
        """Return True if another attempt cannot send a message twice."""
        if isinstance(error, TransactionInDoubtError):
            return self._has_ids and self._removes_duplicates
        return isinstance(error, ConnectionLostError) or (
            isinstance(error, TransactionRolledBackError) and self._lost_unit
        )


logger = get_logger("jmsjca.outbound")

_named = lru_cache(maxsize=256)(named_destination)
"""Returns the destination of a name. A producer knows the last one again, and need not check and resolve it."""


def _destination(destination: str | Destination) -> Destination:
    if isinstance(destination, str):
        return _named(destination)
    check_destination(destination)
    return destination


def _set_duplicate_ids(messages: Sequence[Message], duplicate_id: str) -> None:
    for position, message in enumerate(messages):
        suffix = f"-{position}" if len(messages) > 1 else ""
        message.set_string_property(_DUPLICATE_ID, f"{duplicate_id}{suffix}")


class Publisher(Generic[T]):
    """Sends bodies of one type to one destination. Thread-safe. ``adapter.publisher(…)`` creates it.

    Args:
        sends: The adapter that sends.
        destination: The queue or topic.
        body_type: The type of the bodies.
        description: The text in the AsyncAPI document; None for none.

    Attributes:
        destination: The queue or topic.
        body_type: The type of the bodies.
        description: The text in the AsyncAPI document.
    """

    def __init__(
        self, sends: SendsMessages, destination: Destination, body_type: type[T], description: str | None
    ) -> None:
        self._sends = sends
        self.destination = destination
        self.body_type = body_type
        self.description = description

    def send(self, body: T, *, duplicate_id: str | None = None, **options: Unpack[SendOptions]) -> Message:
        """Send a message, and wait until the broker has it: see `Sender.send`."""
        return self._sends.send(self.destination, body, duplicate_id=duplicate_id, **options)

    def send_many(
        self, bodies: Iterable[T], *, duplicate_id: str | None = None, **options: Unpack[SendOptions]
    ) -> list[Message]:
        """Send messages as one unit: see `Sender.send_many`."""
        return self._sends.send_many(self.destination, bodies, duplicate_id=duplicate_id, **options)

    async def send_async(self, body: T, *, duplicate_id: str | None = None, **options: Unpack[SendOptions]) -> Message:
        """Send a message from a coroutine: see `Sender.send_async`."""
        return await self._sends.send_async(self.destination, body, duplicate_id=duplicate_id, **options)

    def request(self, body: T, *, timeout: float | timedelta = 5.0, **options: Unpack[SendOptions]) -> Message:
        """Send a request at once, also in a handler, and return the reply to it: see `Sender.request`."""
        return self._sends.request(self.destination, body, timeout=timeout, **options)

    def __repr__(self) -> str:
        return f"<Publisher of {getattr(self.body_type, '__name__', self.body_type)} to {self.destination}>"


class DeclaresPublishers(SendsMessages, ABC):
    """The declaration of publishers, for the adapter."""

    @property
    def publishers(self) -> Sequence[Publisher[object]]:
        """The publishers of this adapter, in order of their declaration."""
        return tuple(self._publishers())

    def publisher(
        self, destination: str | Destination, body_type: type[T], description: str | None = None
    ) -> Publisher[T]:
        """Declare that the application sends bodies of a type to a destination, and return the object that sends them.

        The AsyncAPI document of the adapter has the destination and the schema of the bodies.

        Args:
            destination: A queue's name, ``queue:name`` or ``topic:name``, or a `Queue` or a `Topic`.
            body_type: `str`, `bytes`, a dataclass, a pydantic model or another type that a sender accepts.
            description: The text in the AsyncAPI document; None for none.

        Raises:
            InvalidDestinationError: The destination has another type, or its name is empty.
            ArgumentTypeError: The description is not a str.
        """
        TEXT_OR_NONE("description", description)
        if isinstance(destination, str):
            destination = named_destination(destination)
        check_destination(destination)
        publisher = Publisher(self, destination, body_type, description)
        self._publishers().append(cast("Publisher[object]", publisher))
        return publisher

    def publishes(self, destination: str | Destination) -> Callable[[F], F]:
        """Return a decorator that sends the results of a function, except None, to a destination.

        In a handler the messages join the unit of the delivery. Write the decorator below the listener's decorator, so
        that the listener calls the function that sends::

            @adapter.listener("orders")
            @adapter.publishes("invoices")
            def on_order(body: str) -> str: ...

        The function still returns its result, so a listener also sends it to the ``reply_to`` of a request. The
        AsyncAPI document has the annotated type of the result.

        Args:
            destination: As for `publisher`.

        Raises:
            InvalidDestinationError: As `publisher`.
            IllegalStateError: The function is a listener already: the decorator stands above that of the listener.
        """

        def decorate(function: F) -> F:
            """Return the function that also sends its results."""
            self._check_is_not_listening(function)
            publisher = self.publisher(destination, get_type_hints(function).get("return", object))
            if iscoroutinefunction(function):

                @wraps(function)
                async def call_async(*args: Any, **kwargs: Any) -> Any:
                    result = await function(*args, **kwargs)
                    if result is not None:
                        await publisher.send_async(result)
                    return result

                return cast("F", call_async)

            @wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                result = function(*args, **kwargs)
                if result is not None:
                    publisher.send(result)
                return result

            return cast("F", call)

        return decorate

    def _check_is_not_listening(self, function: Callable[..., object]) -> None:
        """Raise an error if the function is a listener. A sender has no listeners."""

    def _publishers(self) -> list[Publisher[object]]:
        return self.__dict__.setdefault("_declared_publishers", [])  # type: ignore[no-any-return]
