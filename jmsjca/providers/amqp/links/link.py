"""The base of sending and receiving links: attach, the broker's refusal, detach."""

import itertools
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.engine.proton_ffi import Pointer
from jmsjca.providers.amqp.errors import link_error

__all__ = ["LinkEnd"]

_numbers = itertools.count(1)


class LinkEnd:
    """Our end of a link, on a session of its own: some brokers answer the failure of a link by ending its session.

    Args:
        engine: The connection.
        what: What the link is for, as errors name it.
        reply_timeout: Seconds to wait for the broker's answers.
    """

    def __init__(self, engine: Engine, what: str, reply_timeout: float) -> None:
        self._engine = engine
        self._what = what
        self._reply_timeout = reply_timeout
        self._opened: Future[None] = Future()
        self._ended: Future[None] = Future()  # on our side
        self._gone: Future[None] = Future()  # on the broker's side, too
        self._link: Any = None
        self._session: Any = None
        self.error: JMSError | None = None

    def attach(self, timeout: float | None = None) -> None:
        """Attach the link and wait for the broker's consent.

        Args:
            timeout: Seconds to wait; None for the connection's own limit.

        Raises:
            JMSError: The broker refused, or did not answer.
        """
        self._engine.call(self._start)
        self._engine.wait(self._opened, self._reply_timeout if timeout is None else timeout, self._what)

    def on_open(self) -> None:
        """The broker attached it; without a terminus it refuses, and the reason follows."""
        if self._is_refused() or self._opened.done():
            return
        objection = self._objection()
        if objection is None:
            self._opened.set_result(None)
        else:
            self._fail(objection)
            self.shut()

    def on_detach(self) -> None:
        """The broker ended the link."""
        self.on_close(self._link.remote_condition)

    def on_end(self) -> None:
        """The broker ended its session, or answers our end of it."""
        if self._gone.done():
            self._engine.sessions.ended(self)
        else:
            self.on_close(self._session.remote_condition)

    def on_close(self, condition: Any) -> None:
        """The broker ended it, or agrees to the end; the condition says why."""
        if not self._ended.done():
            self._fail(self._refusal(condition))
            self.shut()
        if not self._gone.done():
            self._gone.set_result(None)
            self._session.close()  # not earlier: some brokers answer a detach no more once the session ends
            self._engine.sessions.release(self, self._session, self._link)
            self._forget()

    def on_lost(self, error: JMSError) -> None:
        """The connection is gone."""
        self._fail(error)
        for future in (self._ended, self._gone):
            if not future.done():
                future.set_result(None)
        self._forget()

    def on_flow(self) -> None:
        """Nothing to do by default."""

    def on_delivery(self, delivery: Pointer) -> bool:
        """Nothing to do by default."""
        del delivery
        return True

    def _start(self) -> None:
        self._engine.sessions.adopt(self, self._begin)

    def _begin(self) -> None:
        self._session = self._engine.sessions.begin(self)
        self._link = self._make(self._session, f"jmsjca-{next(_numbers)}")
        self._engine.sessions.watch(self._link, self)
        self._link.open()

    def _make(self, session: Any, name: str) -> Any:
        raise NotImplementedError

    def _is_refused(self) -> bool:
        return False

    def _objection(self) -> JMSError | None:
        """What is wrong with what the broker attached, if anything."""

    def _refusal(self, condition: Any) -> JMSError:
        return link_error(condition, f"The broker refused or ended {self._what}")

    def _fail(self, error: JMSError) -> None:
        self.error = self.error or error
        if not self._opened.done():
            self._opened.set_exception(self.error)

    def _forget(self) -> None:
        """Let go of proton's objects, on the thread that may touch them; nothing is done with them any more."""
        self._link = self._session = None

    def shut(self) -> None:
        """Close our end; the session follows when the broker agrees. On the engine's thread."""
        if self._ended.done():
            return
        self._ended.set_result(None)
        self._link.close()

    def close(self) -> None:
        """Close the link, and wait until the broker knows. Not on the engine's thread."""
        self._engine.call(self.shut)
        self._engine.wait(self._gone, self._reply_timeout, f"the end of {self._what}")

    def leave(self) -> None:
        """Close the link without waiting, on any thread; a connection that is gone has none."""
        with suppress(ConnectionLostError):
            self._engine.post(self.shut)
