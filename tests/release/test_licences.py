"""The licences of all packages that the extras install: each permits use in a closed program, unchanged."""

import re
from importlib import metadata

import pytest
from packaging.requirements import Requirement

PERMITTED = re.compile(r"0BSD|Apache|BSD|CC0|ISC|MIT|PSF|Python Software Foundation|ZPL-2\.1|Zlib", re.IGNORECASE)
WORDS = re.compile(r" AND | OR ")
COPYLEFT = re.compile(r"GPL|MPL|EUPL|SSPL|General Public|Mozilla|Affero", re.IGNORECASE)


def packages(name, extras=()):
    """Return the distributions that a package needs, itself included, by name."""
    found, left = {}, [(name, tuple(extras))]
    while left:
        name, extras = left.pop()
        distribution = metadata.distribution(name)
        if (distribution.name, extras) in found:
            continue
        found[distribution.name, extras] = distribution
        wanted = (each for each in map(Requirement, distribution.requires or ()) if is_needed(each, extras))
        left.extend((each.name, tuple(sorted(each.extras))) for each in wanted)
    return {each.name: each for each in found.values()}


def is_needed(requirement, extras):
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))


def licence(distribution):
    """Return the licences that a distribution names: an expression, classifiers, or the beginning of a text."""
    known = distribution.metadata
    if expression := known.get("License-Expression"):
        return WORDS.split(expression)
    classifiers = [text for text in known.get_all("Classifier", []) if text.startswith("License :: ")]
    return [each.rpartition(" :: ")[2] for each in classifiers] or [(known.get("License") or "none")[:100]]


PACKAGES = packages("jmsjca", ["all"])


@pytest.mark.parametrize("name", sorted(PACKAGES))
def test_the_licence_of_each_package_is_permissive(name):
    named = licence(PACKAGES[name])
    assert named
    assert all(PERMITTED.search(each) and not COPYLEFT.search(each) for each in named), named


def test_the_packages_of_all_extras_are_found():
    assert {"python-qpid-proton", "pyspark", "typer", "starlette", "numpy"} <= set(PACKAGES)


@pytest.mark.parametrize("text", ["GPL-3.0-only", "GNU Affero General Public License v3", "MPL-2.0", "none", "UNKNOWN"])
def test_another_licence_is_noticed(text):
    assert not (PERMITTED.search(text) and not COPYLEFT.search(text))
