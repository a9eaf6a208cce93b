"""Planted faults in the connector: each is caught by the test that ``docs/connector-documents.md`` cites.

``JMSJCA_ALL_STEPS=1`` plants all of them; otherwise a sample of those that need no Spark session.
"""

import os
import random
import tomllib
from pathlib import Path

import pytest

from tests.docs.manual_rows import read_rows
from tests.torture.documentation_faults import Fault, plant_all
from tests.torture.planting import ROOT

SAMPLE, SEED = 4, 20
FAULTS = [
    Fault(sentence=entry["test"], **entry)
    for entry in tomllib.loads((Path(__file__).parent / "connector_faults.toml").read_text())["fault"]
]
QUICK = [fault for fault in FAULTS if not fault.test.startswith("spark/test_event_pipeline")]
CITED = {test for row in read_rows(("connector-documents.md",)) for test in row.tests}
WITHOUT_FAULTS = ("brokers/", "torture/", "testing/", "spark/test_flights")  # brokers of their own, or other faults


@pytest.mark.timeout(3600)
def test_faults_are_caught_by_the_cited_tests(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = FAULTS if os.environ.get("JMSJCA_ALL_STEPS") else random.Random(SEED).sample(QUICK, SAMPLE)
    report = plant_all(chosen, len(FAULTS))
    with capsys.disabled():
        print(f"\nconnector {report}")
    assert not report.complaints, "\n".join(report.complaints)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.subject)
def test_every_fault_fits_the_source_and_the_documentation(fault: Fault) -> None:
    text = (ROOT / "jmsjca" / fault.file).read_text()
    assert text.count(fault.old) == 1, f"{fault.old!r} occurs {text.count(fault.old)} times in {fault.file}"
    compile(text.replace(fault.old, fault.new), fault.file, "exec")
    assert fault.test in CITED


def test_every_cited_test_has_a_fault() -> None:
    proved = {fault.test for fault in FAULTS}
    assert {test for test in CITED - proved if not test.startswith(WITHOUT_FAULTS)} == set()
