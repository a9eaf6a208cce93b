"""What came of the kills of a broker."""

from dataclasses import dataclass

from tests.torture.moves import Moves
from tests.torture.verdict import Verdict

__all__ = ["Report"]

MOST_GROWTH = 12  # descriptors or threads that a process may have more of in the end


@dataclass
class Report:
    """One run over one pair of a broker and a protocol.

    Attributes:
        left: Messages that nobody consumed, or that the broker took for dead letters.
        stalled: Who was not at work again in time, after which kill.
        growth: By how much the descriptors or the threads of a process grew, at most.
    """

    pair: str
    seed: int
    kills: int
    pauses: int
    seconds: float
    left: int
    stalled: list[str]
    growth: int
    verdict: Verdict
    moves: Moves
    crashed: list[str]
    complaints: str

    @property
    def good(self) -> bool:
        at_rest = not (self.left or self.stalled or self.crashed)
        return self.verdict.good and self.moves.good and at_rest and self.growth <= MOST_GROWTH

    def __str__(self) -> str:
        v, m = self.verdict, self.moves
        figures = {
            "kills": self.kills, "pauses": self.pauses,
            "committed": v.committed, "consumed": v.consumed, "lost": v.lost, "twice": v.twice,
            "in doubt": v.in_doubt, "known not to have happened": v.fenced, "unexpected": v.unexpected,
            "torn": v.torn,
            "moved": m.moved, "without origin": m.without_origin, "handler calls": m.calls,
            "handled too often": m.too_often, "again by another process": m.again,
            "left": self.left, "stalled": len(self.stalled), "crashed": len(self.crashed),
            "descriptors or threads grown": self.growth,
        }  # fmt: skip
        line = ", ".join(f"{name} {figure}" for name, figure in figures.items())
        return f"{self.pair}: {line} ({self.seconds:.0f} s, seed {self.seed})"
