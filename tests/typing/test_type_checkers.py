"""mypy and pyright, in their strict modes, accept a program of a user, and find each mistake in another one."""

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from jmsjca import ActivationSpec
from jmsjca.config.activation_spec import ActivationSpecFields
from tests.support import spec_fields

ROOT = Path(__file__).parents[2]
ACCEPTED, REJECTED = (Path(__file__).with_name(name) for name in ("accepted.py", "rejected.py"))
CHECKERS = ["mypy", "pyright"]
MISTAKES = [line for line in REJECTED.read_text().splitlines() if line.endswith("  # error")]


def run(*command):
    environment = os.environ | {"MYPYPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", *command, ACCEPTED, REJECTED],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr  # 1: it has found errors
    return done.stdout


@cache
def found(checker):
    """The lines with errors by file: one run of a checker for all tests."""
    pytest.importorskip(checker)
    if checker == "mypy":
        output = run("mypy", "--strict", "--config-file=", "--follow-imports=silent", "--no-error-summary")
        places = re.findall(r"^(\S+?):(\d+): error", output, re.MULTILINE)
    else:
        output = json.loads(run("pyright", "--outputjson", "--pythonpath", sys.executable))
        errors = [each for each in output["generalDiagnostics"] if each["severity"] == "error"]
        places = [(each["file"], each["range"]["start"]["line"] + 1) for each in errors]
    lines = {ACCEPTED.name: [], REJECTED.name: []}
    for file, number in places:
        path = Path(file)
        lines[path.name].append((ROOT / path).read_text().splitlines()[int(number) - 1])
    return lines


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_correct_program_is_accepted(checker):
    assert found(checker)[ACCEPTED.name] == []


@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("line", MISTAKES, ids=str.strip)
def test_a_mistake_is_found(checker, line):
    assert line in found(checker)[REJECTED.name]


@pytest.mark.parametrize("checker", CHECKERS)
def test_nothing_else_is_found(checker):
    assert set(found(checker)[REJECTED.name]) <= set(MISTAKES)


@pytest.mark.parametrize("model", spec_fields.MODELS)
def test_the_types_of_the_fields_are_made_from_the_model(model):
    """``python -m tests.support.spec_fields`` writes them."""
    assert spec_fields.file_of(model).read_text("utf-8") == spec_fields.module(model)


def test_the_typed_fields_are_those_of_the_spec():
    assert (
        get_type_hints(ActivationSpecFields, localns={"SecretStr": object}).keys() == ActivationSpec.model_fields.keys()
    )


@pytest.mark.parametrize("field", ["destination_type", "subscription_durability", "concurrency_mode", "transaction"])
def test_the_words_that_a_field_takes_are_those_of_the_spec(field):
    typed = get_args(get_type_hints(ActivationSpecFields, localns={"SecretStr": object})[field])
    assert set(typed) == set(get_args(ActivationSpec.model_fields[field].annotation))
