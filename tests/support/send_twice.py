"""The query of the demo, killed when a batch has sent everything and has noted nothing: Spark repeats it.

``python -m send_twice FILE`` runs it.
"""

import sys
import threading

from jmsjca.demo import query
from jmsjca.demo.progress import CrashTrigger, note
from jmsjca.demo.settings import DemoSettings

MARK = "sent-before-noted"


def note_late(file, batch):
    """Once, after a committed batch, wait to be killed."""
    mark = file.parent / MARK
    if batch.batch > 0 and not mark.exists():
        mark.touch()
        threading.Event().wait(60)
    note(file, batch)


class SentMoment(CrashTrigger):
    """The moment when all was sent and nothing noted."""

    def has_come(self):
        return self._settings.path(MARK).exists()


if __name__ == "__main__":
    query.note = note_late
    query.run_query(DemoSettings.load(sys.argv[1]))
