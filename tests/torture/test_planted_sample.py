"""Three of the faults that can be planted: the checks of this folder find them."""

import pytest

from tests.torture.planted_faults import find, read_faults
from tests.torture.test_crash_sample import strace  # noqa: F401  # a fixture

SAMPLE = {
    "the count begins anew when a message comes back",
    "a unit settles in one transaction and sends in the next",
    "a send waits for the disk no longer than a receipt does",
}


@pytest.mark.parametrize("fault", [f for f in read_faults() if f.name in SAMPLE], ids=lambda fault: fault.check)
def test_planted_fault_is_found(fault) -> None:
    assert find(fault).said is not None
