"""Faults planted into the staged files, and the test that must find each: otherwise a power cut would."""

import pytest

from tests.torture.planting import copied_source, plant, run_in

SYNCED_FILE = "        file.flush()\n        os.fsync(fd)\n"
SYNCED_FOLDER = "    temporary.replace(path)\n    sync_folder(path.parent)\n"
SYNCED_LINK = "        temporary.unlink(missing_ok=True)\n    sync_folder(path.parent)\n"
FAULTS = {
    "no fsync of the file": (SYNCED_FILE, "        file.flush()\n"),
    "no fsync of the folder of LOW": (SYNCED_FOLDER, "    temporary.replace(path)\n"),
    "no fsync of the folder of a part": (SYNCED_LINK, "        temporary.unlink(missing_ok=True)\n"),
}


@pytest.mark.parametrize("fault", [None, *FAULTS])
def test_a_fault_is_found(fault: str | None) -> None:
    with copied_source() as copy:
        if fault is not None:
            plant(copy, "spark/durable_files.py", *FAULTS[fault])
        check = ["pytest", "-q", "-x", "-p", "no:cacheprovider", "tests/spark/test_staging.py", "-k", "power_cut"]
        done = run_in(copy, check, 120)
    assert ("1 passed" in done.stdout, "1 failed" in done.stdout) == (fault is None, fault is not None), done.stdout
