"""What became of poison: how often handlers saw it, and what its dead letters say of their origin."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from jmsjca import Message
from tests.torture.journal import Log

__all__ = ["DEAD", "HANDLING", "POISON", "Moves", "account_for"]

POISON, DEAD = "poison", "dead"  # queues
CALLS = 2
HANDLING = f"{CALLS}:move(queue:{DEAD})"

_PREFIX = "JMS_Sun_JMSJCA_"
_ORIGIN = {"OriginalDestinationName": POISON, "OriginalDestinationType": "javax.jms.Queue"}
_FURTHER = ("OriginalJMSMessageID", "OriginalTimestamp", "RedeliveryCount")


@dataclass
class Moves:
    """The dead letters of one run. All but `moved`, `calls` and `again` must be 0.

    Attributes:
        moved: Number of dead letters.
        calls: Calls of handlers with poison.
        again: Messages that all processes together handled more often than the redelivery handling says. Each counts
            by itself what it saw, and what the broker has counted; a kill may lose either.
        too_often: Messages that one process handled more often than it says.
        without_origin: Dead letters that do not say where they came from.
    """

    moved: int = 0
    calls: int = 0
    again: int = 0
    too_often: int = 0
    without_origin: int = 0

    @property
    def good(self) -> bool:
        return self.too_often == self.without_origin == 0


def account_for(logs: Sequence[Log], dead: Sequence[Message]) -> Moves:
    """Hold the calls that the processes noted against the dead letters.

    Args:
        logs: The journals of all processes.
        dead: The dead letters.
    """
    calls = Counter(i for log in logs for i in log.handled)
    by_process = [Counter(log.handled) for log in logs]
    return Moves(
        moved=len(dead),
        calls=calls.total(),
        again=sum(times > CALLS for times in calls.values()),
        too_often=len({i for counts in by_process for i, times in counts.items() if times > CALLS}),
        without_origin=sum(not _tells_origin(letter) for letter in dead),
    )


def _tells_origin(letter: Message) -> bool:
    told = letter.properties
    return all(told.get(f"{_PREFIX}{name}") == value for name, value in _ORIGIN.items()) and all(
        told.get(f"{_PREFIX}{name}") is not None for name in _FURTHER
    )
