"""What the log says while an activation cannot connect."""

import logging

from jmsjca.config import InboundOptions
from jmsjca.errors import InvalidClientIDError, JMSError

__all__ = ["Trouble"]

logger = logging.getLogger("jmsjca.inbound")


class Trouble:
    """Tells of each failed attempt, or of the first of a row only.

    Args:
        name: The endpoint's display name.
        options: Which of the two.
        durable: True if it is a durable subscription, which another node may have.

    Attributes:
        connected: True if the broker was reached when the last attempt failed.
    """

    def __init__(self, name: str, options: InboundOptions, *, durable: bool) -> None:
        self._name = name
        self._once = options.minimal_reconnect_logging
        self._elsewhere = options.minimal_reconnect_logging_ds and durable
        self._told = False
        self.connected = False

    def note(self, error: BaseException, attempt: int, seconds: float) -> None:
        """Tell that an attempt failed, and when the next one follows."""
        if not (self._once or self._elsewhere):
            logger.warning(
                "%s: attempt %d failed, the next one follows in %.1f s: %s",
                self._name,
                attempt,
                seconds,
                error,
            )
        elif not self._told:
            self._told = True
            self._tell_once(error)

    def lost(self, error: JMSError) -> None:
        """Tell that a connection broke that had been up for a while."""
        logger.warning("%s lost its connection and makes a new one: %s", self._name, error)

    def while_stopping(self, error: JMSError) -> None:
        """Tell that something broke that was about to end anyway."""
        logger.warning("%s was not stopped in order: %s", self._name, error)

    def over(self) -> None:
        """Note that messages can flow."""
        self._told = False

    def _tell_once(self, error: BaseException) -> None:
        if self._elsewhere and (self.connected or isinstance(error, InvalidClientIDError)):
            logger.info("%s cannot subscribe yet, another node may have the subscription: %s", self._name, error)
        else:
            logger.error("%s cannot connect and keeps trying without further notice: %s", self._name, error)
