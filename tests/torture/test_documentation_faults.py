"""Some of the faults that break documented behaviour, few enough for every test run; and checks of all of them."""

import random

import pytest

from jmsjca.management.beans import ActivationBean, AdapterBean, ServerBean, _python_name
from tests.docs.manual_rows import named_in, read_rows
from tests.torture.documentation_faults import ELSEWHERE, cited_tests, plant_all, read_faults
from tests.torture.planting import ROOT
from tests.torture.public_api import ROOMS, public_members

SAMPLE, SEED = 8, 20
FAULTS = read_faults()
BEANS = (ActivationBean, AdapterBean, ServerBean)
MANAGEMENT = ("jmsjca.management.beans",)  # whose attributes have faults, too


def test_a_sample_is_caught_by_the_cited_tests(capsys: pytest.CaptureFixture[str]) -> None:
    sample = random.Random(SEED).sample(FAULTS, SAMPLE)
    report = plant_all(sample, len(FAULTS))
    with capsys.disabled():
        print(f"\n{report} (sample)")
    assert not report.complaints, "\n".join(report.complaints)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.subject)
def test_every_fault_fits_the_source_and_the_documentation(fault) -> None:
    text = (ROOT / "jmsjca" / fault.file).read_text()
    assert text.count(fault.old) == 1, f"{fault.old!r} occurs {text.count(fault.old)} times in {fault.file}"
    changed = text.replace(fault.old, fault.new)
    assert changed != text
    compile(changed, fault.file, "exec")
    if fault.sentence:
        assert cited_tests(fault.sentence)
        assert fault.test in (None, *cited_tests(fault.sentence))
    else:
        file, _, name = fault.test.partition("::")
        assert name.partition("[")[0] in named_in(file)
        assert fault.defect or any(fault.method in names for names in public_members((*ROOMS, *MANAGEMENT)))


@pytest.mark.parametrize("row", read_rows(), ids=lambda row: row.sentence)
def test_every_test_of_a_row_catches_a_fault(row) -> None:
    faults = [fault for fault in FAULTS if fault.sentence == row.sentence]
    proved = {test for fault in faults for test in ([fault.test] if fault.test else row.tests)}
    assert set(row.tests) - proved - {test for test in row.tests if test.startswith(ELSEWHERE)} == set()
    assert not row.tests or faults


@pytest.mark.parametrize(
    ("bean", "name"),
    [(bean, name) for bean in BEANS for name in (*bean.attribute_names, *bean.operation_names)],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_every_attribute_and_operation_of_a_bean_has_a_fault(bean, name) -> None:
    member = getattr(bean, _python_name(name))
    method = getattr(member, "fget", member).__qualname__  # that of the first name, where there are several
    assert any(fault.method == method or f"`{name}`" in fault.sentence for fault in FAULTS)


@pytest.mark.parametrize("names", public_members(), ids=min)
def test_every_public_member_has_a_fault(names: frozenset[str]) -> None:
    assert names & {fault.method for fault in FAULTS}
