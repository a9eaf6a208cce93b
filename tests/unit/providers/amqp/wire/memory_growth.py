"""How much memory this process came to need during something, its C libraries included."""

from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["MIB", "growth_below"]

MIB = 1024 * 1024
_PROCESS = Path("/proc/self")


@contextmanager
def growth_below(limit):
    """Fail if the peak of the memory in use goes up by as many bytes."""
    if not (_PROCESS / "clear_refs").exists():
        pytest.skip("This system does not tell the peak of a process's memory.")
    (_PROCESS / "clear_refs").write_text("5")  # the peak is what is in use now
    before = _kib("VmRSS")
    yield
    grown = (_kib("VmHWM") - before) * 1024
    assert grown < limit, f"{grown / MIB:.0f} MiB more"


def _kib(name):
    lines = (_PROCESS / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))
