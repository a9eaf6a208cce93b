"""The base of sender and receiver links: attach, the broker's refusal, detach."""

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
    """A link on its own session, because some brokers end the session of a link that fails.

    Args:
        engine: The connection's engine.
        purpose: The purpose of the link, as error messages name it.
        reply_timeout: Seconds to wait for the broker's replies.

    Attributes:
        error: Why the link failed or was ended by the broker; None otherwise.
    """

    def __init__(self, engine: Engine, purpose: str, reply_timeout: float) -> None:
        self._engine = engine
        self._purpose = purpose
        self._reply_timeout = reply_timeout
        self._attached: Future[None] = Future()
        self._locally_detached: Future[None] = Future()  # by this side
        self._detached: Future[None] = Future()  # by both sides
        self._link: Any = None
        self._session: Any = None
        self.error: JMSError | None = None

    def attach(self, timeout: float | None = None) -> None:
        """Attach the link and wait for the broker's attach.

        Args:
            timeout: Seconds to wait; None for the connection's reply timeout.

        Raises:
            JMSError: The broker refused, or did not answer.
        """
        self._engine.call(self._begin_or_queue)
        self._engine.wait(self._attached, self._reply_timeout if timeout is None else timeout, self._purpose)

    def on_attached(self) -> None:
        """The broker attached the link. An attach without a terminus is a refusal; a detach with the reason follows."""
        if self._is_refused() or self._attached.done():
            return
        objection = self._attach_error()
        if objection is None:
            self._attached.set_result(None)
        else:
            self._fail(objection)
            self.detach()

    def on_detached(self) -> None:
        """The broker detached the link."""
        self.on_closed(self._link.remote_condition)

    def on_session_ended(self) -> None:
        """The broker ended the session, or answered this side's end."""
        if self._detached.done():
            self._engine.sessions.on_ended(self)
        else:
            self.on_closed(self._session.remote_condition)

    def on_closed(self, condition: Any) -> None:
        """The broker ended the link or its session, or confirmed the end. The condition holds the reason."""
        if not self._locally_detached.done():
            self._fail(self._refusal_error(condition))
            self.detach()
        if not self._detached.done():
            self._detached.set_result(None)
            # Not earlier: some brokers do not answer a detach after the end of its session.
            self._engine.sessions.release(self, self._session, self._link)
            self._release()

    def on_connection_lost(self, error: JMSError) -> None:
        """The connection is lost."""
        self._fail(error)
        for future in (self._locally_detached, self._detached):
            if not future.done():
                future.set_result(None)
        self._release()

    def on_flow(self) -> None:
        """Do nothing by default."""

    def on_delivery(self, delivery: Pointer) -> bool:
        """Do nothing by default."""
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
        """Return the error in the terminus that the broker attached, if any."""

    def _refusal_error(self, condition: Any) -> JMSError:
        return link_error(condition, f"The broker refused or ended {self._purpose}")

    def _fail(self, error: JMSError) -> None:
        self.error = error if self.error is None else self.error
        if not self._attached.done():
            self._attached.set_exception(self.error)

    def _release(self) -> None:
        """Drop the references to proton's objects, on the thread that may use them. The link is not used any more."""
        self._link = self._session = None

    def detach(self) -> None:
        """Detach the link. The session ends when the broker has answered. Engine thread only."""
        if self._locally_detached.done():
            return
        self._locally_detached.set_result(None)
        self._link.close()

    def close(self) -> None:
        """Close the link and wait for the broker's detach. Not on the engine thread."""
        self._engine.call(self.detach)
        self._engine.wait(self._detached, self._reply_timeout, f"the end of {self._purpose}")

    def close_nowait(self) -> None:
        """Close the link without waiting, on any thread. Does nothing if the connection is lost."""
        with suppress(ConnectionLostError):
            self._engine.submit(self.detach)
