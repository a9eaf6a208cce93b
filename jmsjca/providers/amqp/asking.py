"""A consumer over AMQP and its credit: it asks for messages, and stops asking."""

import time
from functools import partial

from jmsjca.providers.amqp.appetite import Appetite
from jmsjca.providers.amqp.settling import SettlingConsumer
from jmsjca.spi import Order

__all__ = ["AskingConsumer"]

_MOMENT = 3e-5  # seconds


class AskingConsumer(SettlingConsumer):
    """Who receives tells it what arrives.

    Args:
        order: How its deliveries are settled.
        appetite: How many messages it wants.
    """

    def __init__(self, order: Order, appetite: Appetite) -> None:
        super().__init__(order)
        self._appetite = appetite
        self._waiting = 0  # how many wait for a message
        self._stopping = 0  # how many wait for the end of what is on its way

    def missed(self) -> None:
        """Ask again for what does not come. On the engine's thread."""
        with self._changed:
            self._grant()

    def credited(self, more: int) -> None:
        """Credit was taken back, or had to be more. On the engine's thread."""
        with self._changed:
            self._appetite.credit += more

    def revoke(self) -> None:
        """Ask for no more, so that nothing that is let go comes back here."""
        self._engine.post(self._link.revoke)

    def _grant_more(self) -> None:
        """Ask for what fits beside what has arrived, if somebody did not just stop that."""
        if self._appetite.window and not self._stopping:
            self._grant()

    def _grant_waiting(self) -> None:
        """Ask again for those who wait: to take something back, the credit that they asked for was taken, too."""
        with self._changed:
            if self._waiting and not self._stopping:
                self._grant()

    def _grant(self) -> bool:
        """Ask for what is missing; True if something is."""
        if self._error is not None or self.closed:
            return False
        missing = self._appetite.ask(len(self._shelf.ready), self._shelf.size)
        if missing:
            self._engine.tell(partial(self._link.grant, missing))
        return missing > 0

    def _give_way(self) -> None:
        """Let the engine's thread write what was asked for, so that it comes while this thread handles what is here.

        Python changes threads every 5 ms (`sys.setswitchinterval`), when a short chunk may be handled already.
        """
        time.sleep(_MOMENT)

    def _look(self) -> None:
        """Find out whether the broker really has nothing, without waiting for what comes later."""
        while not self._stop():
            with self._changed:
                if self._shelf.ready or self._error or self.closed:
                    return
                self._grant()

    def _stop(self) -> bool:
        """Take the credit back; what was on its way is here then. True if the broker has no more."""
        with self._changed:
            self._stopping += 1
        try:
            return self._link.stop()
        finally:
            with self._changed:
                self._stopping -= 1
