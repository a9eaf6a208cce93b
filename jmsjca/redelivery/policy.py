"""The redelivery policy: which action belongs to which encounter."""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Self

from jmsjca.redelivery.actions import Action, Deliver
from jmsjca.redelivery.parsing import Rung, Source, parse

__all__ = ["DEFAULT_REDELIVERY_HANDLING", "RedeliveryPolicy"]

DEFAULT_REDELIVERY_HANDLING = "3:25; 5:50; 10:100; 20:1000; 50:5000"
"""What holds where nothing is said: longer and longer delays, and no message is ever given up."""


@dataclass(frozen=True, slots=True)
class RedeliveryPolicy:
    """A redelivery handling that was read: a ladder of actions. Use `parse`.

    Policies are equal if they were written alike for the same source; they can be pickled.

    Attributes:
        text: As it was written.
        source: Where the messages come from: what ``$`` and ``same`` stand for.
        rungs: From which encounter on which action is in force.
    """

    text: str
    source: Source
    rungs: tuple[Rung, ...] = field(compare=False, repr=False)

    @classmethod
    def parse(cls, text: str, destination: str = "Queue1", destination_type: str = "queue") -> Self:
        """Read a redelivery handling as ``5:1000; 10:5000; 50:move(queue:dlq.$)``.

        Args:
            text: Entries ``<index>:<action>`` with rising indexes up to 50,000,000, separated by semicolons. An action
                is a delay in milliseconds (up to 2,147,483,647), ``delete``, or ``move(queue|topic|same:<name>)``; the
                latter two stand last. An empty text is for no action at all.
            destination: Where the messages come from: its name replaces each ``$`` in the name of a move's target. Of
                ``lookup://path/name`` the name does, and the path is put in front.
            destination_type: "queue" or "topic": what ``same`` stands for.

        Raises:
            InvalidRedeliveryHandlingError: The text is not valid, or an index or a delay is out of bounds.
        """
        source = Source(destination, destination_type)
        return cls(text, source, parse(text, source))

    def __str__(self) -> str:
        return self.text

    @property
    def highest_index(self) -> int:
        """The last rung's index, 0 if there is none.

        It is reached only where the broker delivers a message one time more than that, so a maximum that the broker has
        of its own must be greater than this.
        """
        return self.rungs[-1][0] if self.rungs else 0

    @property
    def last_action(self) -> Action:
        """What is done in the end."""
        return self.rungs[-1][1] if self.rungs else Deliver()

    def action(self, n: int) -> Action:
        """Tell what to do with a message that is seen for the n-th time with its redelivered flag set.

        An action is in force until the next one's index; the last one for ever.
        """
        place = bisect_right(self.rungs, n, key=_index)
        return self.rungs[place - 1][1] if place else Deliver()

    def changed(self, text: str) -> "RedeliveryPolicy":
        """Read another redelivery handling for messages of the same source.

        Raises:
            InvalidRedeliveryHandlingError: It is not valid.
        """
        return RedeliveryPolicy.parse(text, self.source.name, self.source.kind)


def _index(rung: Rung) -> int:
    return rung[0]
