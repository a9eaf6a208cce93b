"""Whose message it is, if a broker handed one to several partitions: exactly one of them keeps it.

Each part decides after it is published, and a decision stands once it is written. A part leaves a message to a smaller
part that holds it, and to a larger one that has decided to keep it. Nobody waits: if the larger one has not decided,
for instance because its attempt crashed, its decision is made here, from the same files.

Why one keeps it: the smallest part that holds it leaves it only to one that keeps it. Why only one: of two, the one
that was published later sees the other, and either leaves the message to it or takes note that it was left.
"""

from jmsjca.spark.staging import Part, Staging

__all__ = ["decide"]


def decide(staging: Staging, part: Part) -> set[str]:
    """Decide, if nobody has, which messages of a published part belong to other parts.

    Returns:
        Their keys.
    """
    decision = staging.decision(part)
    return staging.decide(part, _find_foreign(staging, part)) if decision is None else decision


def _find_foreign(staging: Staging, part: Part) -> set[str]:
    mine = staging.keys(part)
    sure = staging.is_confirmed(part)
    foreign: set[str] = set()
    for other in staging.parts():
        # A confirmed part got its messages for good; only doubt, its or ours, lets two hold the same.
        if other == part or (sure and staging.is_confirmed(other)):
            continue
        common = mine & staging.keys(other)
        if common:
            foreign |= common if other < part else common - decide(staging, other)
    return foreign
