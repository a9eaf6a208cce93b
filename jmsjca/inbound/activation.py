"""An activation: one message-driven endpoint, from start to stop."""

import contextlib
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from jmsjca import spi
from jmsjca.errors import IllegalStateError, JMSError
from jmsjca.hooks import HookChain
from jmsjca.inbound.endpoint import Endpoint
from jmsjca.inbound.handlers import Handler
from jmsjca.inbound.loops import HandlerLoop
from jmsjca.inbound.modes import Delivery, delivery_of
from jmsjca.inbound.statistics import Statistics
from jmsjca.inbound.terms import terms_of
from jmsjca.inbound.unavailable import refuse_unavailable
from jmsjca.links import ConnectionSettings, connect_persistently, may_pass
from jmsjca.messages import Settlement

if TYPE_CHECKING:
    from jmsjca.config import ActivationSpec

__all__ = ["Activation", "Status"]

Status = Literal["Up", "Down", "Connecting", "Disconnecting"]

logger = logging.getLogger("jmsjca.inbound")


class Activation:
    """Made by `ResourceAdapter.activate`. Connects, delivers, connects again when the connection breaks.

    Args:
        spec: What to listen to.
        handler: The user's function.
        settings: What connections are made from.
        hooks: What surrounds deliveries and hears of changes.
        loop: Where the handler's coroutines run; None for a loop of its own.

    Attributes:
        spec: What it listens to.
        stats: What it counted.

    Raises:
        ConfigurationError: The handler asks for something that it cannot be given.
        NotSupportedError: The spec asks for something that this release does not do yet.
    """

    def __init__(
        self,
        spec: "ActivationSpec",
        handler: Callable[..., object],
        settings: ConnectionSettings,
        hooks: HookChain,
        loop: HandlerLoop | None = None,
    ) -> None:
        refuse_unavailable(spec)
        self.spec = spec
        terms = terms_of(spec)
        self.stats = Statistics(configured=terms.pool_size)
        self._handler = Handler(handler, loop)
        self._settings = settings
        self._hooks = hooks
        self._status: Status = "Down"
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._endpoint = Endpoint(
            self.name,
            terms,
            self._handler,
            statistics=self.stats,
            hooks=hooks,
            limits=settings.limits,
            clock=settings.clock,
            request_stop=self._stop_soon,
            activation=self,
            mbean_name=spec.mbean_name,
        )
        self._delivery: Delivery | None = None

    @property
    def name(self) -> str:
        """The display name, for logs and hooks."""
        return f"{self.spec.concurrency_mode}({self.spec.destination_type}:{self.spec.destination})"

    @property
    def status(self) -> Status:
        """Up when messages can flow; else "Down", "Connecting" or "Disconnecting"."""
        return self._status

    def start(self) -> None:
        """Begin to connect, and deliver as soon as that succeeds. Does nothing if it was started already.

        Raises:
            IllegalStateError: It is being stopped just now.
        """
        with self._lock:
            if self._status == "Disconnecting":
                raise IllegalStateError(f"{self.name} is being stopped; start it again when its status is 'Down'.")
            if self._status != "Down":
                return
            self._stopping.clear()
            self._status = "Connecting"
            self._thread = threading.Thread(target=self._run, name=f"jmsjca {self.name}", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Finish the message in hand, give back what was taken ahead, disconnect; returns when that is done.

        Called by the handler itself it returns at once, and all this happens after the handler returned.
        """
        with self._lock:
            thread = self._thread
            begins = self._status in ("Up", "Connecting")
            if begins:
                self._status = "Disconnecting"
        if begins:
            self._tell("Disconnecting")
            self._interrupt()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def settle(self, message_id: str, action: str) -> Settlement:
        """Acknowledge a held message, or let its unit roll back, by its id alone. Does not wait.

        Args:
            message_id: Which message.
            action: "JBXCommit" or "JBXRollback", in upper or lower case.

        Raises:
            ConfigurationError: The action is another one.
            IllegalStateError: No such message is held: it never was, it is acknowledged, or its unit is settled.
        """
        return self._endpoint.held.settle(message_id, action)

    def _stop_soon(self, reason: str | None) -> None:
        """Stop, on another thread: whoever asks for it is being waited for."""
        logger.warning("%s is stopped by its handler: %s", self.name, reason or "<unspecified>")
        threading.Thread(target=self.stop, name=f"jmsjca stop {self.name}", daemon=True).start()

    def __repr__(self) -> str:
        return f"<Activation {self.name} {self._status}>"

    def _run(self) -> None:
        try:
            self._handler.open()
            self._tell("Connecting")
            while not self._stopping.is_set():
                self._connect_and_deliver()
        except JMSError as error:
            logger.error("%s is down and stays down: %s", self.name, error)  # noqa: TRY400  # the text says it all
        except Exception:
            logger.exception("%s is down: a fault in jmsjca or its provider.", self.name)
        finally:
            self._handler.close()
            self._change("Down")

    def _connect_and_deliver(self) -> None:
        connection = connect_persistently(self._settings, self._stopping)
        if connection is None:
            return
        try:
            self._deliver(connection)
        except JMSError as error:
            if not may_pass(error):
                raise
            logger.warning("%s lost its connection and makes a new one: %s", self.name, error)
            self._change("Connecting")
            self._stopping.wait(1.0)
        finally:
            self._delivery = None
            with contextlib.suppress(JMSError):  # given up anyway
                connection.close()

    def _deliver(self, connection: spi.Connection) -> None:
        delivery = delivery_of(self._endpoint, connection)
        with self._lock:
            self._delivery = delivery
            if self._stopping.is_set():
                delivery.stop()
        self._change("Up")
        delivery.run()

    def _interrupt(self) -> None:
        with self._lock:
            if self._status != "Disconnecting":
                return  # it ended by itself meanwhile, and may have been started again
            self._stopping.set()
            if self._delivery is not None:
                self._delivery.stop()

    def _change(self, status: Status) -> None:
        with self._lock:
            if self._status in (status, "Disconnecting") and status != "Down":
                return
            self._status = status
        self._tell(status)

    def _tell(self, status: Status) -> None:
        """Tell of a change, without the lock: a hook may call `stop`."""
        logger.info("%s is %s.", self.name, status)
        self._hooks.status_changed(self.name, status)
