"""The base of sending and receiving links: attach, the broker's refusal, detach."""

import itertools
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.engine.proton_ffi import Pointer
from jmsjca.providers.amqp.errors import link_error

__all__ = ["Link"]

_numbers = itertools.count(1)


class Link:
    """Our end of a link, on a session of its own: some brokers answer the failure of a link by ending its session.

    Args:
        engine: The connection.
        what: What the link is for, as errors name it.
        reply_timeout: Seconds to wait for the broker's answers.
    """

    def __init__(self, engine: Engine, purpose: str, reply_timeout: float) -> None:
        self._engine = engine
        self._purpose = purpose
        self._reply_timeout = reply_timeout
        self._attached: Future[None] = Future()
        self._locally_detached: Future[None] = Future()  # on our side
        self._detached: Future[None] = Future()  # on the broker's side, too
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
        self._engine.call(self._begin_or_queue)
        self._engine.wait(self._attached, self._reply_timeout if timeout is None else timeout, self._purpose)

    def on_attached(self) -> None:
        """The broker attached it; without a terminus it refuses, and the reason follows."""
        if self._is_refused() or self._attached.done():
            return
        objection = self._attach_error()
        if objection is None:
            self._attached.set_result(None)
        else:
            self._fail(objection)
            self.detach()

    def on_detached(self) -> None:
        """The broker ended the link."""
        self.on_closed(self._link.remote_condition)

    def on_session_ended(self) -> None:
        """The broker ended its session, or answers our end of it."""
        if self._detached.done():
            self._engine.sessions.on_ended(self)
        else:
            self.on_closed(self._session.remote_condition)

    def on_closed(self, condition: Any) -> None:
        """The broker ended it, or agrees to the end; the condition says why."""
        if not self._locally_detached.done():
            self._fail(self._refusal_error(condition))
            self.detach()
        if not self._detached.done():
            self._detached.set_result(None)
            self._session.close()  # not earlier: some brokers answer a detach no more once the session ends
            self._engine.sessions.release(self, self._session, self._link)
            self._release()

    def on_connection_lost(self, error: JMSError) -> None:
        """The connection is gone."""
        self._fail(error)
        for future in (self._locally_detached, self._detached):
            if not future.done():
                future.set_result(None)
        self._release()

    def on_flow(self) -> None:
        """Nothing to do by default."""

    def on_delivery(self, delivery: Pointer) -> bool:
        """Nothing to do by default."""
        del delivery
        return True

    def _begin_or_queue(self) -> None:
        self._engine.sessions.begin_or_queue(self, self._begin)

    def _begin(self) -> None:
        self._session = self._engine.sessions.begin(self)
        self._link = self._create(self._session, f"jmsjca-{next(_numbers)}")
        self._engine.sessions.register(self._link, self)
        self._link.open()

    def _create(self, session: Any, name: str) -> Any:
        raise NotImplementedError

    def _is_refused(self) -> bool:
        return False

    def _attach_error(self) -> JMSError | None:
        """What is wrong with what the broker attached, if anything."""

    def _refusal_error(self, condition: Any) -> JMSError:
        return link_error(condition, f"The broker refused or ended {self._purpose}")

    def _fail(self, error: JMSError) -> None:
        self.error = self.error or error
        if not self._attached.done():
            self._attached.set_exception(self.error)

    def _release(self) -> None:
        """Let go of proton's objects, on the thread that may touch them; nothing is done with them any more."""
        self._link = self._session = None

    def detach(self) -> None:
        """Close our end; the session follows when the broker agrees. On the engine's thread."""
        if self._locally_detached.done():
            return
        self._locally_detached.set_result(None)
        self._link.close()

    def close(self) -> None:
        """Close the link, and wait until the broker knows. Not on the engine's thread."""
        self._engine.call(self.detach)
        self._engine.wait(self._detached, self._reply_timeout, f"the end of {self._purpose}")

    def close_nowait(self) -> None:
        """Close the link without waiting, on any thread; a connection that is gone has none."""
        with suppress(ConnectionLostError):
            self._engine.submit(self.detach)
