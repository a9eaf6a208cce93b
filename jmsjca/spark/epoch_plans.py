"""The plans of epochs that a driver began before Spark asked for them, see `jmsjca.spark.prefetch`.

::

    <location>/v1/<gen>/plan-0000000017              the offset at the end of the epoch

The plan of such an epoch is durable before its first message is received, and exactly one process plans the epoch: a
driver begins an epoch only if it has created the folder of the epoch itself. A driver that finds the folder without a
plan, because its predecessor crashed or still runs, records its own plan, or uses that of the predecessor.
"""

import json

from jmsjca.spark.epochs import Offset, Share
from jmsjca.spark.sealed_files import create_sealed, damaged, read_sealed, replace_sealed
from jmsjca.spark.staging import Staging

__all__ = ["EpochPlans"]


class EpochPlans:
    """The plans of epochs that began before Spark asked for them.

    Args:
        staging: The staged files of the generation.
    """

    def __init__(self, staging: Staging) -> None:
        self._staging = staging

    def open(self, plan: Offset) -> Offset:
        """Create the folder of the epoch that Spark asks for, and return its plan.

        Returns:
            Another plan than the given one if a process has begun the epoch with it.
        """
        if self._staging.create_epoch(plan.epoch):  # then no other process begins it
            return plan
        return plan if self._record(plan) else self.find(plan.epoch) or plan

    def begin(self, plan: Offset) -> bool:
        """Create the folder and record the plan of an epoch that Spark has not asked for.

        Returns:
            False if another process was first, or the epoch is over.
        """
        return plan.epoch > self._staging.low and self._staging.create_epoch(plan.epoch) and self._record(plan)

    def find(self, epoch: int) -> Offset | None:
        """Return the plan of an epoch; None if it was not begun.

        Raises:
            StoreError: The plan is damaged, or the folder of the epoch is missing.
        """
        text = read_sealed(self._staging.store, self.name(epoch))
        if text is None:
            return None
        self._staging.check_present(epoch)
        try:
            return Offset.from_json(json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise damaged(self._staging.store, self.name(epoch), str(error)) from error

    def repair(self, epoch: int) -> str:
        """Replace a damaged plan, and return what was done. A plan is not used any more once Spark's log has it."""
        parts = 1 + max((part.number for part in self._staging.published(epoch)), default=-1)
        if not parts:
            self._staging.store.delete(self.name(epoch))
            return "removed: the epoch has no messages yet"
        plan = Offset(epoch, self._staging.gen, (Share(parts, parts),))
        replace_sealed(self._staging.store, self.name(epoch), json.dumps(plan.to_json()))
        return "set to the partitions that are staged"

    def numbers(self) -> list[int]:
        """Return the epochs that have a plan."""
        return sorted(
            int(name.removeprefix("plan-")) for name in self._staging.store.names() if name.startswith("plan-")
        )

    def remove(self, epoch: int) -> None:
        """Remove the plans of all epochs up to one that Spark has committed."""
        self._staging.store.sweep(name="plan-")
        for number in self.numbers():
            if number <= epoch:
                self._staging.store.delete(self.name(number))

    def name(self, epoch: int) -> str:
        """Return the name of the file of a plan."""
        return f"plan-{epoch:010d}"

    def _record(self, plan: Offset) -> bool:
        return create_sealed(self._staging.store, self.name(plan.epoch), json.dumps(plan.to_json()))
