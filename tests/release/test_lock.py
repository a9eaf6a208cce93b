"""The lock has every package that the extras install, each in a release that pyproject.toml permits, with hashes."""

import re
import tomllib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / ".ci" / "locked.txt").read_text()
ENTRY = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>\S+)(?P<hashes>(?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n", re.MULTILINE
)
LOCKED = {canonicalize_name(entry["name"]): entry["version"] for entry in ENTRY.finditer(LOCK)}


def demanded():
    """Return what jmsjca asks for with all its extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *(each for extra in project["optional-dependencies"].values() for each in extra)]
    return [each for each in map(Requirement, lines) if canonicalize_name(each.name) != "jmsjca"]


def installed(name):
    """Return the release of a package that is installed here, or None."""
    with suppress(PackageNotFoundError):
        return version(name)


def test_the_lock_has_nothing_but_comments_and_entries_with_hashes():
    rest = [line for line in ENTRY.sub("", LOCK).splitlines() if line and not line.startswith("#")]
    assert rest == []


@pytest.mark.parametrize("demand", demanded(), ids=str)
def test_what_pyproject_asks_for_is_locked_in_a_permitted_release(demand):
    assert LOCKED[canonicalize_name(demand.name)] in demand.specifier


@pytest.mark.parametrize("name", sorted(name for name in LOCKED if installed(name) == LOCKED[name]))
def test_what_a_locked_package_needs_is_locked_too(name):
    needs = [Requirement(line) for line in requires(name) or ()]
    wanted = {each.name for each in needs if each.marker is None or each.marker.evaluate({"extra": ""})}
    assert {canonicalize_name(each) for each in wanted} - {*LOCKED} == set()
