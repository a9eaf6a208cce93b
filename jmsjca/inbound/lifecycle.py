"""One run of an activation: from a start to the stop that follows, over any number of connections."""

import logging
import threading
from concurrent.futures import Executor

from jmsjca.config import InboundOptions
from jmsjca.errors import JMSError
from jmsjca.inbound.adjustment import Adjustments
from jmsjca.inbound.attempt import Attempt
from jmsjca.inbound.endpoint import Endpoint
from jmsjca.inbound.inside import inside
from jmsjca.inbound.life import Life
from jmsjca.inbound.trouble import Trouble
from jmsjca.links import ConnectionSettings, Connector, keep_trying, may_pass

__all__ = ["Service"]

logger = logging.getLogger("jmsjca.inbound")

_STEADY = 30.0  # seconds after which a connection that breaks is not taken for one that never worked
_TELL_EVERY = 15.0


class Service:
    """Connects and delivers on a thread of its own, and again when the connection breaks, until it is ended.

    Args:
        endpoint: Whose messages.
        settings: What connections are made from.
        options: How failures are told.
        executor: What handlers run on in the mode cc; None for threads of its own.
        life: Told what leads to another status.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        settings: ConnectionSettings,
        options: InboundOptions,
        executor: Executor | None,
        life: Life["Service"],
    ) -> None:
        self._endpoint = endpoint
        self._settings = settings
        self._connector = Connector(settings)
        self._executor = executor
        self._life = life
        self._trouble = Trouble(endpoint.name, options, durable=endpoint.terms.subscription_name is not None)
        self._adjustments = Adjustments(endpoint.name)
        self._stopping = threading.Event()
        self._ending = threading.Lock()
        self._ended = threading.Event()
        self._over = False
        self._given_up = self._cut_off = False
        self._attempt: Attempt | None = None
        self._up_since: float | None = None

    def begin(self) -> None:
        """Start the thread."""
        threading.Thread(target=inside(self._run), name=f"jmsjca {self._endpoint.name}", daemon=True).start()

    def end_intake(self) -> None:
        """Take no more messages; the thread ends when the handlers at work are done."""
        self._stopping.set()
        if self._attempt is not None:
            self._attempt.stop()

    def finish(self, timeout: float | None) -> bool:
        """Wait for the handlers at work; after so many seconds close the connection over them. None: wait for ever.

        Returns:
            True if all of them ended in time.
        """
        clock = self._settings.clock
        deadline = None if timeout is None else clock.monotonic() + timeout
        while not self._ended.is_set():
            left = None if deadline is None else deadline - clock.monotonic()
            if left is not None and left <= 0:
                self._give_up()
                self._ended.wait()
            elif not self._settings.wait(self._ended, _TELL_EVERY if left is None else min(left, _TELL_EVERY)):
                logger.info("%s is being stopped and waits for %s.", self._endpoint.name, self._who())
        return not self._given_up

    def _who(self) -> str:
        return f"{self._endpoint.statistics.n_active_endpoints} handlers at work"

    def _give_up(self) -> None:
        self._cut_off = True
        busy = self._endpoint.statistics.n_active_endpoints
        if busy:
            self._given_up = True  # before others who wait are woken by what follows
            logger.warning(
                "%s was stopped before all was done: %s; their messages come again.", self._endpoint.name, self._who()
            )
        if self._attempt is not None:
            self._attempt.give_up()
        if self._endpoint.statistics.n_active_endpoints:  # one may have begun just then
            self._given_up = True
        self._end()

    def _open(self) -> None:
        """Let coroutines run, unless this was given up before its thread began."""
        with self._ending:
            if not self._over:
                self._endpoint.handler.open()

    def _end(self) -> None:
        """Be over, once: the handler is that of the next run, too."""
        with self._ending:
            over, self._over = self._over, True
            if not over:
                self._endpoint.handler.close()
        if not over:
            self._life.happens("ended", self)
            self._ended.set()

    def _run(self) -> None:
        try:
            self._open()
            while not self._stopping.is_set():
                keep_trying(self._connect_and_deliver, self._stopping, self._trouble.note, self._settings.wait)
        except JMSError as error:
            logger.error("%s is down and stays down: %s", self._endpoint.name, error)  # noqa: TRY400  # says it all
        except Exception:
            logger.exception("%s is down: a fault in jmsjca or its provider.", self._endpoint.name)
        finally:
            self._end()

    def _connect_and_deliver(self) -> None:
        """Make one attempt; returns when it is stopped, or breaks after it has been up for a while."""
        self._up_since = None
        attempt = self._attempt = Attempt(self._endpoint, self._connector, self._adjustments, self._executor)
        if self._stopping.is_set():  # who sets it stops the attempt that it sees
            return
        try:
            attempt.run(self._up, lambda error: self._lost(attempt, error))
        except JMSError as error:
            self._life.happens("broken", self)
            self._trouble.connected = attempt.connected
            if self._stopping.is_set():
                if not self._cut_off:
                    self._trouble.while_stopping(error)
            elif may_pass(error) and self._was_steady():
                self._trouble.lost(error)
            else:
                raise

    def _up(self) -> None:
        self._trouble.over()
        self._up_since = self._settings.clock.monotonic()
        self._life.happens("connected", self)

    def _lost(self, attempt: Attempt, error: JMSError) -> None:
        self._life.happens("broken", self, lambda: attempt is self._attempt)  # what is told late is known already
        attempt.stop(error)

    def _was_steady(self) -> bool:
        return self._up_since is not None and self._settings.clock.monotonic() - self._up_since >= _STEADY
