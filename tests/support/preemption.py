"""Two threads at once: one is halted at each of its steps in turn, and the other runs as far as it gets."""

import sys
from threading import Event, Lock, Thread

__all__ = ["Preemption"]


class Preemption:
    """Halts one operation before its n-th step, until another one has ended or waits for a lock.

    Args:
        step: Before which.
        place: The file or folder whose steps count.
    """

    def __init__(self, step, place):
        self.left, self._place = step, place
        self.stopped = Event()
        self.other = None

    def lock(self):
        """Make a lock that both use."""
        return TellingLock(self.stopped)

    def play(self, first, second):
        """Play both, and tell whether the first one has as many steps."""
        self.other = Thread(target=self._run, args=[second])
        before = sys.gettrace()
        sys._getframe().f_trace_opcodes = True  # Python 3.12 traces opcodes only if a frame asked for them before
        sys.settrace(self._trace)
        try:
            first()
        finally:
            sys.settrace(before)
        if self.left > 0:
            return False
        self.other.join()
        return True

    def _run(self, second):
        second()
        self.stopped.set()

    def _trace(self, frame, event, _):
        if not frame.f_code.co_filename.startswith(self._place):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.left -= 1
            if self.left == 0:
                self.other.start()
                self.stopped.wait()
        return self._trace


class TellingLock:
    """A lock that tells that somebody waits for it."""

    def __init__(self, waited_for):
        self._lock, self._waited_for = Lock(), waited_for

    def __enter__(self):
        if not self._lock.acquire(blocking=False):
            self._waited_for.set()
            self._lock.acquire()

    def __exit__(self, *_):
        self._lock.release()
