"""Calls the user's handler, runs coroutines of async handlers on an event loop, and sends the replies."""

import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Sequence, Sized
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from jmsjca.errors import ConfigurationError, IllegalStateError, InvalidDestinationError, MessageFormatError
from jmsjca.forking import Process, end_child, reset_in_child
from jmsjca.inbound.handler_arguments import (
    ArgumentResolver,
    DependencyResolver,
    Invocation,
    callable_name,
    is_async,
    run_without_waiting,
)
from jmsjca.messages.converters import Converters
from jmsjca.messages.delivery import Settlement, original_message_id
from jmsjca.messages.message import Message
from jmsjca.outbound.session import Session

if TYPE_CHECKING:
    import asyncio

__all__ = [
    "Handler",
    "HandlerLoop",
    "failure_of",
    "fulfil",
    "handler_traceback",
    "is_current",
    "loop_of_this_thread",
    "send_replies",
]

T = TypeVar("T")

_CLOSE_TIMEOUT = 1.0  # seconds to wait for coroutines that do not react to cancellation


def loop_of_this_thread() -> "asyncio.AbstractEventLoop | None":
    """Return the event loop that runs on the current thread, or None."""
    if "asyncio" not in sys.modules:  # a program with a loop has imported it; others need not
        return None
    import asyncio

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class HandlerLoop:
    """The event loop of all async handlers of an adapter, so that they can share objects that are bound to a loop.

    If the adapter was entered with ``async with``, it is the application's loop. Otherwise it is a background loop on
    its own thread, from the first coroutine until the last endpoint with coroutines is closed.
    """

    def __init__(self) -> None:
        self._reset_after_fork()
        reset_in_child(self, HandlerLoop._reset_after_fork)

    def _reset_after_fork(self) -> None:
        """Reset the state after a fork: the parent's threads do not exist in the child."""
        self._lock = threading.Lock()
        self._application_loop: asyncio.AbstractEventLoop | None = None
        self._background: _BackgroundLoop | None = None
        self._members = 0

    def use(self, loop: "asyncio.AbstractEventLoop | None") -> None:
        """Run coroutines on the application's loop from now on; None returns to the background loop."""
        with self._lock:
            self._application_loop = loop

    def is_current(self) -> bool:
        """Return True if the caller runs on the coroutines' loop. No coroutine can end while such a caller blocks."""
        loop = self.running()
        return loop is not None and loop_of_this_thread() is loop

    def running(self) -> "asyncio.AbstractEventLoop | None":
        """Return the loop that coroutines run on; None before the first coroutine."""
        with self._lock:
            return self._application_loop or (self._background.loop if self._background is not None else None)

    def acquire(self) -> None:
        """Register an endpoint that may have coroutines."""
        with self._lock:
            self._members += 1

    def release(self) -> None:
        """Unregister an endpoint. After the last one the background loop ends."""
        with self._lock:
            self._members -= 1
            if self._members or self._background is None:
                return
            background, self._background = self._background, None
        background.close()

    def get(self) -> "asyncio.AbstractEventLoop":
        """Return the loop for new coroutines. It is started if necessary."""
        with self._lock:
            if self._application_loop is not None:
                return self._application_loop
            if self._background is None or self._background.loop.is_closed():  # a coroutine may have closed it
                self._background = _BackgroundLoop()
            return self._background.loop


class _BackgroundLoop:
    """An event loop on its own thread.

    Attributes:
        loop: The running loop.
    """

    loop: "asyncio.AbstractEventLoop"

    def __init__(self) -> None:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jmsjca handlers' event loop", daemon=True)
        self._thread.start()
        self._ready.wait()

    def close(self) -> None:
        """Cancel running coroutines and end the thread. Does not wait for the thread if called on it."""
        with suppress(RuntimeError):  # the loop is already closed
            self.loop.call_soon_threadsafe(self._over.set)
        if threading.current_thread() is not self._thread:
            self._thread.join(_CLOSE_TIMEOUT)

    def _run(self) -> None:
        import asyncio  # only async handlers need it

        with suppress(KeyboardInterrupt):  # raised by a task that a handler started
            asyncio.run(self._serve())

    async def _serve(self) -> None:
        import asyncio  # only async handlers need it

        self._over = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        self._ready.set()
        await self._over.wait()


class Handler:
    """The user's function, called with the arguments that its parameters require (see `ArgumentResolver`).

    An ``async`` function runs on the event loop while the handler is open, and the delivering thread waits for it.
    Thread-safe.

    Args:
        function: The user's function.
        loop: The event loop for coroutines; None to create one.
        converters: Converts bodies and replies; None for `Converters.default`.
        joined: True if the parameter ``transaction`` gets the manager of a container-managed transaction.

    Attributes:
        name: The name of the function.
        converters: Converts bodies and replies.
        whole_batches: True if the function takes all messages of a batch in one call.
        takes_end_of_batch: True if the function is also called with the end of a batch.

    Raises:
        ConfigurationError: A required parameter has no value, or ``function`` is not a callable function.
    """

    def __init__(
        self,
        function: Callable[..., object],
        loop: HandlerLoop | None = None,
        converters: Converters | None = None,
        *,
        joined: bool = False,
    ) -> None:
        self._function = function
        self._loop = loop or HandlerLoop()
        self.name = callable_name(function)
        self.converters = converters or Converters.default()
        self._arguments = ArgumentResolver(function, self.converters, joined=joined)
        self._dependencies = (
            DependencyResolver(function, self._arguments, self.converters, joined=joined)
            if self._arguments.dependencies
            else None
        )
        self._is_async = is_async(function)
        self.whole_batches = self._arguments.whole_batches
        self.takes_end_of_batch = self._arguments.takes_end_of_batch
        self._lock = Lock()
        self._running: set[_RunningCoroutine] = set()
        self._open = False

    def __call__(self, invocation: Invocation) -> object:
        """Call the function. If it is ``async``, wait for its coroutine.

        Raises:
            IllegalStateError: The event loop has ended; the endpoint is then being stopped.
            CancelledError: The coroutine was cancelled.
            BaseException: The function's error.
        """
        forks = Process.forks
        try:
            if self._dependencies is not None:
                scoped = self._dependencies.call(invocation)
                return self._run_coroutine(scoped, invocation) if self._is_async else run_without_waiting(scoped)
            positional, keyword = self._arguments.resolve(invocation)
            result = self._function(*positional, **keyword)
            if result is not None and isinstance(result, Coroutine):
                return self._run_coroutine(result, invocation)  # pyright: ignore[reportUnknownArgumentType]
            return result
        finally:
            if Process.forks != forks:
                end_child(self.name, sys.exception())

    def running_loop(self) -> "asyncio.AbstractEventLoop | None":
        """Return the event loop of the handler's coroutines; None before the first coroutine."""
        return self._loop.running()

    def event_loop(self) -> "asyncio.AbstractEventLoop":
        """Return the event loop of the handler's coroutines. It is started if necessary.

        Raises:
            IllegalStateError: The listener is down.
        """
        with self._lock:
            if not self._open:
                raise IllegalStateError("The listener is down, so that its handler has no event loop.")
            return self._loop.get()

    def runs_on_calling_loop(self) -> bool:
        """Return True if coroutines would run on the caller's own loop, so that the caller must not wait for them."""
        return self._loop.is_current()

    def open(self) -> None:
        """Allow coroutines to run."""
        with self._lock:
            if not self._open:
                self._open = True
                self._loop.acquire()

    def close(self) -> None:
        """Cancel running coroutines and refuse new ones. Idempotent."""
        with self._lock:
            running, was_open, self._open = list(self._running), self._open, False
        for coroutine in running:
            coroutine.cancel()
        if was_open:
            self._loop.release()

    def _run_coroutine(self, coroutine: Coroutine[Any, Any, object], invocation: Invocation) -> object:
        running = self._start(coroutine, invocation)
        try:
            return running.result()
        finally:
            with self._lock:
                self._running.discard(running)
            if running.loop_lost:  # no further message can be delivered
                invocation.message.stop_message_delivery("the event loop of its handler does not run any more")

    def _start(self, coroutine: Coroutine[Any, Any, object], invocation: Invocation) -> "_RunningCoroutine":

        with self._lock:
            if not self._open:
                coroutine.close()
                raise IllegalStateError("The listener is down, so its handler cannot run.")
            running = _RunningCoroutine(coroutine, self._loop.get(), invocation.on_task_started)
            self._running.add(running)
        return running


_POLL_INTERVAL = 0.5  # seconds between checks of a waiting thread that the loop still runs
_LOOP_GONE = (
    "The event loop that the adapter was entered on does not run any more, so no async handler can. Leave the "
    "'async with adapter' block before its loop ends."
)


class _RunningCoroutine:
    """A coroutine on an event loop, in the context of the thread that created it and waits for it.

    Args:
        coroutine: The coroutine.
        loop: The event loop to run on.
        on_task_started: Called with the task when it starts.

    Attributes:
        loop_lost: True if the loop no longer runs.
    """

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, object],
        loop: "asyncio.AbstractEventLoop",
        on_task_started: Callable[[object], None],
    ) -> None:
        self._coroutine = coroutine
        self._loop = loop
        self._on_task_started = on_task_started
        self._task: asyncio.Task[object] | None = None
        self._ended: Future[object] = Future()
        self.loop_lost = False
        try:
            loop.call_soon_threadsafe(self._start)
        except RuntimeError:  # the loop is closed; `result` raises
            coroutine.close()

    def result(self) -> object:
        """Wait for the result of the coroutine, and return it.

        Raises:
            IllegalStateError: The loop no longer runs.
            CancelledError: The coroutine was cancelled.
            BaseException: The coroutine's error.
        """
        self._wait()
        ended, self._ended = self._ended, Future()
        self._task = None
        error = ended.exception()
        try:
            if error is not None:  # before Python 3.13 `result` tests the exception itself for its truth
                raise error
            return ended.result()
        finally:
            del ended, error  # the error's traceback refers to this frame: avoids a reference cycle

    def cancel(self) -> None:
        """Cancel the coroutine. It ends after its clean-up."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cancel)

    def _wait(self) -> None:
        was_there = not self._loop.is_closed()
        while not self._has_ended():
            is_there = self._loop.is_running()
            if not (is_there or was_there):  # checked twice: the loop may be between two runs of the application
                self._abandon()
                raise IllegalStateError(_LOOP_GONE)
            was_there = is_there

    def _has_ended(self) -> bool:
        """Wait for at most `_POLL_INTERVAL` seconds, and return True if the coroutine has ended."""
        try:
            self._ended.exception(_POLL_INTERVAL)
        except TimeoutError:
            task = self._task
            if task is not None and task.done():  # its callback may have failed for lack of memory
                with suppress(InvalidStateError):
                    self._finish(task)
            return self._ended.done()
        return True

    def _abandon(self) -> None:
        self.loop_lost = True
        self.cancel()
        if self._task is None:
            self._coroutine.close()

    def _start(self) -> None:
        self._task = self._loop.create_task(self.run_contained())
        self._task.add_done_callback(self._finish)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def run_contained(self) -> object:
        """Run the coroutine. Exceptions that would stop the loop are caught here, and only end the delivery.

        A `KeyboardInterrupt` on the main thread may come from the user, so it does stop the application's loop.
        """
        import asyncio  # only async handlers need it

        self._on_task_started(asyncio.current_task())  # here, as a loop may run a task before `create_task` returns
        forks = Process.forks
        try:
            try:
                return await self._coroutine
            finally:
                if Process.forks != forks:
                    end_child(getattr(self._coroutine, "__qualname__", ""), sys.exception())
        except SystemExit as error:
            return _Exit(error)
        except KeyboardInterrupt as error:
            if threading.current_thread() is threading.main_thread():
                raise
            return _Exit(error)

    def _finish(self, task: "asyncio.Task[object]") -> None:
        if task.cancelled():
            self._ended.set_exception(CancelledError("The handler was cancelled before it had finished."))
        elif (error := task.exception()) is not None:
            self._ended.set_exception(error)
        elif isinstance(result := task.result(), _Exit):
            self._ended.set_exception(result.error)
        else:
            self._ended.set_result(result)


class _Exit:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def failure_of(call: Callable[[], object]) -> BaseException | None:
    """Call code of the application. Return the exception that ended it, or None.

    An exit, such as `SystemExit`, is also returned: it only ends this call, not the thread.
    """
    try:
        call()
    except BaseException as error:  # noqa: BLE001  # the caller decides about the error
        return error
    return None


def fulfil(future: "Future[T]", call: Callable[[], T]) -> None:
    """Set a future to the result of a call, or to the exception that ended the call."""
    failed = failure_of(lambda: future.set_result(call()))
    if failed is not None:
        future.set_exception(failed)
    del failed  # its traceback refers to this frame: avoids a reference cycle


def is_current(task: object) -> bool:
    """Return True if the caller runs in this task."""
    import asyncio  # the caller may be a task

    try:
        return asyncio.current_task() is task
    except RuntimeError:  # no loop runs on this thread
        return False


_CALLERS = {Handler.__call__.__code__, DependencyResolver.call.__code__, _RunningCoroutine.run_contained.__code__}


def handler_traceback(trace: TracebackType | None) -> TracebackType | None:
    """Return the part of a traceback from the handler's own frame on; all of it if the handler did not run."""
    own, at = trace, trace
    while at is not None:
        if at.tb_frame.f_code in _CALLERS:
            own = at.tb_next or own
        at = at.tb_next
    return own


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
        result: The reply; None for no reply. The result of ``acknowledge()`` counts as None. For a whole batch, a list
            or tuple with one reply per message, or None for messages without a reply.
        converters: Converts the replies to messages.
        on_dropped: Called with the request and the error if the temporary destination of its reply does not exist.

    Raises:
        ConfigurationError: The result is a generator or an awaitable, so its work has not been done.
        MessageFormatError: A reply cannot be converted to a message, or the numbers of replies and messages differ.
        NotSupportedError: The broker cannot acknowledge the requests and send the replies in one transaction.
    """
    if result is None or isinstance(result, Settlement):
        return
    if isinstance(result, Awaitable | Generator | AsyncGenerator):  # for example a coroutine returned by a coroutine
        raise ConfigurationError(
            f"The handler returned a {type(cast('object', result)).__name__}, whose work is not done, as nothing awaits"
            " it or iterates over it. Await it in a handler that is declared with 'async def', or return what it makes."
        )
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

    The reply's correlation id is the request's correlation id, or else its message id (JMS 3.1, section 3.4.5). The
    reply has the request's priority and delivery mode. ``result`` is a message, or a body for a new message.
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
