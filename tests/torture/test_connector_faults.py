"""Planted faults in the connector: one for each sentence of docs/reference/connector-documents.md, caught by its test.

``JMSJCA_ALL_STEPS=1`` plants all of them; otherwise a sample of those that need no Spark session.
"""

import os
import random
import tomllib
from pathlib import Path

import pytest

from tests.docs.manual_rows import Row, read_rows
from tests.torture.documentation_faults import Fault, plant_all
from tests.torture.planting import ROOT

SAMPLE, SEED = 4, 20
FILES = sorted((Path(__file__).parent / "connector_faults").glob("*.toml"))
TABLES = [tomllib.loads(file.read_text()) for file in FILES]
FAULTS = [Fault(**entry) for table in TABLES for entry in table["fault"]]
REASONS = {entry["sentence"]: entry["reason"] for table in TABLES for entry in table.get("without", ())}
QUICK = [fault for fault in FAULTS if not fault.test.startswith("spark/test_event_pipeline")]
ROWS = [row for row in read_rows(("connector-documents.md",)) if row.tests]
CITED = {test for row in ROWS for test in row.tests}
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
    assert any(fault.sentence == row.sentence and fault.test in row.tests for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.sentence)
def test_every_sentence_has_its_own_fault_or_a_reason(row: Row) -> None:
    changes = {(fault.file, fault.old, fault.new) for fault in FAULTS if fault.sentence == row.sentence}
    others = {(fault.file, fault.old, fault.new) for fault in FAULTS if fault.sentence != row.sentence}
    assert bool(changes - others) != bool(REASONS.get(row.sentence))


def test_every_reason_is_that_of_a_sentence() -> None:
    assert REASONS.keys() <= {row.sentence for row in ROWS}


def test_every_cited_test_has_a_fault() -> None:
    proved = {fault.test for fault in FAULTS}
    assert {test for test in CITED - proved if not test.startswith(WITHOUT_FAULTS)} == set()
