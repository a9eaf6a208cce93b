"""A case of the contract is skipped for a capability, or it has failed."""

import subprocess
import sys

import pytest

_PROJECT = """
import pytest
from jmsjca.testing.contract import Contract, Harness

class TestMine(Contract):
    def test_about_a_capability(self, harness):
        harness.require("shared_between_processes")

    def test_about_a_degree(self, harness):
        harness.require_release("none")

    def test_about_what_a_broker_has(self, harness):
        harness.require_lack("browse")

    def test_inconvenient(self, harness):
        pytest.skip("It is slow.")

def test_of_another_kind(tmp_path):
    pytest.skip("It is slow.")
"""


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    (folder / "test_project.py").write_text(_PROJECT)
    command = [sys.executable, "-m", "pytest", "-q", "-rfs", "-p", "no:cacheprovider", "."]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False).stdout


def test_only_a_capability_excuses_a_case(output):
    assert "1 failed, 4 skipped" in output
    assert "FAILED test_project.py::TestMine::test_inconvenient" in output
    assert "not so:" in output


@pytest.mark.parametrize("name", ["shared_between_processes", "give_back", "browse"])
def test_a_skip_names_the_capability(output, name):
    assert f"capability {name}" in output


def test_a_provider_can_import_both_suites_into_one_module():
    from jmsjca.testing import contract, inbound

    assert set(contract.__all__) & set(inbound.__all__) == set()
