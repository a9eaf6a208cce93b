"""The fault that the demo must not have: messages settled before they are staged."""

import threading
from pathlib import Path

from jmsjca.demo.progress import CrashTrigger
from jmsjca.spark import JmsDataSource
from jmsjca.spark.options import SourceOptions
from jmsjca.spark.partition import PartitionReader
from jmsjca.spark.reader import JmsStreamReader

MARK = "settled-before-staged"


class SettleFirst(PartitionReader):
    """Settles, then stages; between the two, once, after a committed batch, it waits to be killed."""

    def _stage_and_settle(self, lease, consumer, received):
        unit = lease.connection.unit(atomic=False)
        unit.take(received)
        unit.commit()
        self._wait_for_the_kill()
        self._staging.publish(self._part, self._columns.staged(*self._part[:2], set()))

    def _wait_for_the_kill(self):
        mark = Path(self._options.stagingLocation).parent / MARK
        if self._part.epoch > 1 and not mark.exists():
            mark.touch()
            threading.Event().wait(60)


class SettleFirstReader(JmsStreamReader):
    def read(self, partition):
        return SettleFirst(self._options, partition).read()


class SettleFirstSource(JmsDataSource):
    def __init__(self, options):
        super().__init__(options)
        self._given = options

    def streamReader(self, schema):  # noqa: N802
        return SettleFirstReader(SourceOptions.parse(self._given))


class SettledMoment(CrashTrigger):
    """The moment of the fault: settled, not yet staged."""

    def has_come(self):
        return self._settings.path(MARK).exists()
