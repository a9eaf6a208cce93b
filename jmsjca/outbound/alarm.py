"""Tells an application that its connection is lost."""

import logging
import threading
from collections.abc import Callable

from jmsjca.errors import JMSError

__all__ = ["Alarm", "ExceptionListener"]

ExceptionListener = Callable[[JMSError], object]
"""Called with what happened to a connection."""

logger = logging.getLogger("jmsjca.outbound")


class Alarm:
    """Calls the exception listener of a connection (JMS 3.1, section 6.1.7).

    Attributes:
        listener: Whom to call; None for nobody.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.listener: ExceptionListener | None = None

    def ring(self, error: JMSError) -> None:
        """Let the listener know, on a thread of its own: it may close the connection, whose thread this is."""
        if self.listener is not None:
            threading.Thread(
                target=self._call, args=(self.listener, error), name="jmsjca exception listener", daemon=True
            ).start()

    def _call(self, listener: ExceptionListener, error: JMSError) -> None:
        with self._lock:
            try:
                listener(error)
            except Exception:
                logger.exception("The exception listener failed; nothing else changes.")
