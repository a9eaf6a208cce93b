"""Rules of the source that a linter does not have: code that would decide about security, or could run foreign code."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

import jmsjca

ROOT = Path(jmsjca.__file__).parent
ALL = [
    (path.relative_to(ROOT).as_posix(), node)
    for path in sorted(ROOT.rglob("*.py"))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
]
WITHOUT_SECRETS = {"demo", "testing"}  # their random numbers make flights, and names of queues
LOADS_PICKLES = "messages/safe_pickle.py"
FOREIGN = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle"}


def nodes(kind):
    """Return the nodes of a kind of all files, with the file."""
    return [(file, node) for file, node in ALL if isinstance(node, kind)]


def imports():
    for file, node in nodes(ast.Import):
        yield from ((file, alias.name.partition(".")[0]) for alias in node.names)
    for file, node in nodes(ast.ImportFrom):
        yield file, (node.module or "").partition(".")[0]


def calls(*names):
    for file, node in nodes(ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", None)
        if name in names:
            yield file, node


def test_the_rules_of_bandit_hold_with_few_exceptions():
    """They are the rules S of ruff, which `make lint` checks; each exception has its reason beside it."""
    lint = tomllib.loads((ROOT.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]
    assert "ALL" in lint["select"]
    assert not [rule for rule in lint["ignore"] if re.fullmatch(r"S\d*", rule)]
    ignored = {path: rules for path, rules in lint["per-file-ignores"].items() if path.startswith("jmsjca")}
    assert {rule for rules in ignored.values() for rule in rules if re.fullmatch(r"S\d*", rule)} == {"S101"}
    for path in ROOT.rglob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if found := re.search(r"# noqa: [A-Z\d, ]*\bS\d{3}\b[A-Z\d, ]*(.*)$", line):
                assert found[1].strip().startswith("# "), f"{path}: {line.strip()}"


def test_only_one_module_loads_pickles():
    assert {file for file, name in imports() if name in FOREIGN} == {LOADS_PICKLES}


def test_nothing_is_evaluated():
    found = {file for file, node in calls("eval", "exec", "compile", "__import__") if isinstance(node.func, ast.Name)}
    assert found == set()


def test_no_command_is_run_by_a_shell():
    for _, node in nodes(ast.Call):
        assert not any(each.arg == "shell" for each in node.keywords)
    assert not list(calls("system", "popen", "getoutput", "getstatusoutput"))


def test_random_numbers_are_no_secrets():
    assert {file.partition("/")[0] for file, name in imports() if name == "random"} <= WITHOUT_SECRETS


@pytest.mark.parametrize("off", [{"verify": False}, {"check_hostname": False}, {"verify_mode": 0}])
def test_no_verification_is_off(off):
    [(name, value)] = off.items()
    for file, node in nodes(ast.Call):
        for keyword in node.keywords:
            is_off = isinstance(keyword.value, ast.Constant) and keyword.value.value == value
            assert not (keyword.arg == name and is_off), file
    for file, node in nodes(ast.Attribute):
        assert node.attr not in {"CERT_NONE", "_create_unverified_context"}, file
    for file, node in nodes(ast.Assign):
        for target in node.targets:
            is_off = isinstance(node.value, ast.Constant) and node.value.value == value
            assert not (isinstance(target, ast.Attribute) and target.attr == name and is_off), file


def test_every_logger_writes_records_of_one_line():
    assert {file for file, _ in calls("getLogger")} == {"log_records.py"}


def test_secrets_are_compared_in_constant_time():
    """A comparison with == tells by its time how much of a token is right."""
    for file, node in nodes(ast.Compare):
        if not file.startswith("management/") or not any(isinstance(each, ast.Eq | ast.NotEq) for each in node.ops):
            continue
        names = {getattr(side, "attr", getattr(side, "id", "")) for side in (node.left, *node.comparators)}
        assert not {"token", "csrf", "password", "secret"} & names, (file, node.lineno)
