"""The provider of the documentation is found by its entry point, and passes both contract suites."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from matrix_sample import SEED, count

from tests.docs.replay import TUTORIAL, steps_of

PAGE = TUTORIAL.parents[1] / "how-to" / "provider-example.md"
CASES = 300  # at least so many are collected
SAMPLE = 0 if os.environ.get("JMSJCA_ALL_STEPS") else 40  # so many run; all if 0


def run(*command, folder, path=()):
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"]),
        "PYTHONPATH": os.pathsep.join([*map(str, path), str(TUTORIAL.parents[1])]),
        "HOME": str(folder),
    }
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Write the files of the page, and install the provider into a folder of its own."""
    folder = tmp_path_factory.mktemp("project")
    for step in steps_of(PAGE.read_text()):
        if step.file:
            (folder / step.file).write_text(step.text)
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--no-cache-dir", "--target", "installed")
    assert run("pip", "install", *options, ".", folder=folder) == (0, "")
    (folder / "toy_provider.py").unlink()  # the installed one counts
    return folder


def test_the_contract_module_has_ten_lines(project):
    lines = (project / "test_toy_provider.py").read_text().splitlines()
    assert len([line for line in lines if line]) <= 10


def test_the_example_passes_both_suites(project):
    """A seeded sample of the cases; all of them with JMSJCA_ALL_STEPS=1."""
    pytest_command = ("pytest", "-q", "-W", "error", "-p", "no:cacheprovider")
    status, output = run(*pytest_command, "--collect-only", folder=project, path=[project / "installed"])
    cases = [line for line in output.splitlines() if "::" in line]
    assert len(cases) > CASES, output
    chosen = random.Random(SEED).sample(cases, SAMPLE) if SAMPLE else cases
    status, output = run(*pytest_command, *chosen, folder=project, path=[project / "installed"])
    assert status == 0, output
    count("cases of the example's contract suites", len(chosen), len(cases))


def test_a_fault_in_the_example_is_found(project):
    """A rollback that forgets to count fails the contract."""
    module = project / "installed" / "toy_provider.py"
    text = module.read_text()
    broken = text.replace("uncounted=each in unused", "uncounted=True")
    assert broken != text
    module.write_text(broken)
    try:
        status, output = run(
            *("pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", "test_rollback_counts"),
            folder=project,
            path=[project / "installed"],
        )
    finally:
        module.write_text(text)
    assert status == 1
    assert "test_rollback_counts" in output
