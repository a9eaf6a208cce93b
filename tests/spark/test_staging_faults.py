"""Faults planted into the stores of staged files, and the test that must find each: otherwise a power cut would."""

import pytest

from tests.torture.planting import copied_source, plant, run_in

FOLDER, OBJECTS, STAGING = "spark/folder_store.py", "spark/object_store.py", "spark/staging.py"
SYNCED_FILE = "        file.flush()\n        os.fsync(fd)\n"
SYNCED_FOLDER = "        temporary.replace(path)\n        _sync_folder(path.parent)\n"
FLUSHED = "        _sync_folder(self.folder / folder)\n"
SYNCED_LINK = "            temporary.unlink(missing_ok=True)\n        _sync_folder(path.parent)\n"
CREATED = 'self._put(name, content.getbuffer(), mode="create")'
VISIBLE = "for folder, names in sorted(found.items()) if _MARKER in names}"
CHECKED = "        if not self.store.has_folder(epoch_folder(part.epoch)):\n            raise FileNotFoundError"
FAULTS = {
    "no fsync of the file": ("power_cut", FOLDER, SYNCED_FILE, "        file.flush()\n"),
    "no fsync of the folder of LOW": ("power_cut", FOLDER, SYNCED_FOLDER, "        temporary.replace(path)\n"),
    "no fsync of the folder of a part": (
        "power_cut",
        FOLDER,
        SYNCED_LINK,
        "            temporary.unlink(missing_ok=True)\n",
    ),
    "no fsync of a decision that another one relies on": ("power_cut", FOLDER, FLUSHED, "        del folder\n"),
    "conditional create is a plain put": (
        "first_counts and s3",
        OBJECTS,
        CREATED,
        CREATED.replace("create", "overwrite"),
    ),
    "the probe creates an object once": (
        "without_conditional",
        OBJECTS,
        ' or (self.exclusive and self._put(name, b"probe", mode="create")):',
        ":",
    ),
    "what is created in a removed folder is seen": (
        "late_attempt_is_invisible and s3",
        OBJECTS,
        VISIBLE,
        "for folder, names in sorted(found.items())}",
    ),
    "keys in a removed folder are seen": (
        "late_attempt_is_invisible and s3",
        STAGING,
        CHECKED,
        CHECKED.replace("if not self", "if False and not self"),
    ),
}


@pytest.mark.parametrize("chosen", sorted({fault[0] for fault in FAULTS.values()}))
def test_the_tests_pass_without_a_fault(chosen: str) -> None:
    with copied_source() as copy:
        done = run_in(copy, check(chosen), 120)
    assert "1 passed" in done.stdout, done.stdout


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str) -> None:
    chosen, file, old, new = FAULTS[fault]
    with copied_source() as copy:
        plant(copy, file, old, new)
        done = run_in(copy, check(chosen), 120)
    assert "1 failed" in done.stdout, done.stdout


def check(chosen: str) -> list[str]:
    if chosen != "power_cut":
        for library in ("moto", "obstore"):
            pytest.importorskip(library)
    return ["pytest", "-q", "-x", "-p", "no:cacheprovider", "tests/spark/test_staging.py", "-k", chosen]
