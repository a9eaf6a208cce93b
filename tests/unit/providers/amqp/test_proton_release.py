"""The installed release of proton: one that is not tested, or that lacks a private name, is refused in one line."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import cproton_ffi
import proton
import pytest

from jmsjca.errors import ConfigurationError
from jmsjca.providers.amqp.engine import proton_ffi

ROOT = Path(__file__).parents[4]
SOURCE = Path(proton_ffi.__file__)
FUNCTIONS = sorted(set(re.findall(r'_function\("(\w+)"\)', SOURCE.read_text(encoding="utf-8"))))


class Without:
    """Something of proton's that lacks a name."""

    def __init__(self, original, name):
        self._original, self._name = original, name

    def __getattr__(self, name):
        if name == self._name:
            raise AttributeError(name)
        return getattr(self._original, name)


def load():
    """Import the module once more, under another name."""
    spec = importlib.util.spec_from_file_location("proton_ffi_again", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def replace_library(monkeypatch, **names):
    library = ModuleType("cproton_ffi")
    library.__dict__.update({"ffi": cproton_ffi.ffi, "lib": cproton_ffi.lib} | names)
    monkeypatch.setitem(sys.modules, "cproton_ffi", library)
    return library


def test_every_function_is_looked_up_in_the_same_way():
    assert len(FUNCTIONS) == 32
    assert "lib.pn" not in SOURCE.read_text(encoding="utf-8")
    load()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_that_is_missing_is_named(monkeypatch, name):
    replace_library(monkeypatch, lib=Without(cproton_ffi.lib, name))
    with pytest.raises(ConfigurationError, match=rf"lacks {name}: pip install"):
        load()


def test_all_that_is_missing_is_named(monkeypatch):
    replace_library(monkeypatch, lib=object())
    with pytest.raises(ConfigurationError) as caught:
        load()
    assert all(name in str(caught.value) for name in FUNCTIONS)


def test_a_type_that_is_missing_is_named(monkeypatch):
    class Types(Without):
        def typeof(self, name):
            if name == "pn_delivery_tag_t *":
                raise cproton_ffi.ffi.error(name)

    replace_library(monkeypatch, ffi=Types(cproton_ffi.ffi, ""))
    with pytest.raises(ConfigurationError, match="lacks pn_delivery_tag_t"):
        load()


@pytest.mark.parametrize("name", ["Collector", "Transport", "Connection"])
def test_a_wrapper_without_its_pointer_is_named(monkeypatch, name):
    monkeypatch.setattr(proton, name, object)
    with pytest.raises(ConfigurationError, match="lacks _impl"):
        load()


def test_a_delivery_that_cannot_be_wrapped_is_named(monkeypatch):
    class Delivery:
        ACCEPTED = RELEASED = MODIFIED = 0

    monkeypatch.setattr(proton, "Delivery", Delivery)
    with pytest.raises(ConfigurationError, match="lacks wrap"):
        load()


@pytest.mark.parametrize("name", ["ffi", "lib"])
def test_a_library_of_another_form_is_named(monkeypatch, name):
    delattr(replace_library(monkeypatch), name)
    with pytest.raises(ConfigurationError, match=f"cproton_ffi.*{name}"):
        load()


def test_a_library_that_is_missing_is_named(monkeypatch):
    """It is no missing package: proton is there."""
    monkeypatch.setitem(sys.modules, "cproton_ffi", None)
    with pytest.raises(ConfigurationError, match=r"0\.40\.\d+ is installed.*cproton_ffi"):
        load()


@pytest.mark.parametrize(("version", "is_tested"), [((0, 39, 9), False), ((0, 40, 0), True), ((0, 40, 7), True)])
def test_a_release_that_is_not_tested_is_refused(monkeypatch, version, is_tested):
    monkeypatch.setattr(proton, "VERSION", version)
    if is_tested:
        load()
    else:
        with pytest.raises(ConfigurationError, match=r"~=0\.40\.0, and 0\.39\.9 is installed: pip install"):
            load()


def test_the_check_and_the_package_ask_for_the_same_releases():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["optional-dependencies"]["amqp"] == [proton_ffi._REQUIREMENT]
    release = ".".join(map(str, proton_ffi._TESTED_RELEASE))
    assert f"python-qpid-proton~={release}.0" == proton_ffi._REQUIREMENT


def test_interpreter_that_only_imports_it_ends_in_silence():
    """Proton complains on standard error about an object that lives until the interpreter's exit."""
    command = [sys.executable, "-c", "import jmsjca.providers.amqp.provider"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stderr == ""
