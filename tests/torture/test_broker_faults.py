"""Planted faults that tests on real brokers catch; ``JMSJCA_ALL_STEPS=1`` plants them."""

import os
import tomllib
from pathlib import Path

import pytest

from tests.docs.manual_rows import named_in
from tests.torture.documentation_faults import Fault, plant_all
from tests.torture.planting import ROOT

FAULTS = [
    Fault(**entry) for entry in tomllib.loads((Path(__file__).parent / "broker_faults.toml").read_text())["fault"]
]


@pytest.mark.timeout(3600)
@pytest.mark.skipif(not os.environ.get("JMSJCA_ALL_STEPS"), reason="each fault needs a broker: make torture")
def test_faults_are_caught(capsys: pytest.CaptureFixture[str]) -> None:
    report = plant_all(FAULTS, len(FAULTS), 1, verbose=True)
    with capsys.disabled():
        print(f"\nbrokers: {report}")
    assert not report.complaints, "\n".join(report.complaints)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.defect)
def test_every_fault_fits_the_source(fault: Fault) -> None:
    text = (ROOT / "jmsjca" / fault.file).read_text()
    assert text.count(fault.old) == 1, f"{fault.old!r} occurs {text.count(fault.old)} times in {fault.file}"
    compile(text.replace(fault.old, fault.new), fault.file, "exec")
    file, _, name = (fault.test or "").partition("::")
    assert name.partition("[")[0] in named_in(file)
