"""Wrong use gets one line with the remedy, and exit status 2."""

import subprocess
import sys

import pytest

from jmsjca import __version__
from jmsjca.__main__ import run


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (["demo", "--url", "embeded:///x.db"], "did you mean embedded://?"),
        (["demo", "--url", "no url"], "must begin with a scheme"),
        (["demo", "--url", "embedded:///no/such/folder/x.db"], "make it, or correct the URL"),
        (["demo", "--url", "embedded://memory"], "embedded:///folder/file.db"),
        (["demo", "--url", f"embedded://{__file__}"], "Name another file"),
        (["demo", "--input", "/no/such/file"], "Name an existing file"),
        (["demo", "--input", "/"], "--input / cannot be read"),
        (["demo", "--airports", "/no/such/file"], "--airports"),
        (["demo", "--poison", "2"], "between 0 and 1"),
        (["demo", "--poison", "much"], "--poison"),
        (["demo", "--events", "0"], "at least 1"),
        (["demo", "--json", "/no/such/folder/x.json"], "there is no folder"),
        (["demo", "--frobnicate"], "--help"),
        (["frobnicate"], "--help"),
    ],
)
def test_wrong_use(arguments, remedy, capsys, tmp_path):
    if arguments[0] == "demo":
        arguments = [*arguments, "--output", str(tmp_path / "out")]
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert remedy in captured.err
    assert captured.err.startswith("jmsjca: ")
    assert captured.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_input_that_is_not_events(capsys, tmp_path):
    (tmp_path / "x.json").write_text("[{]")
    assert run(["demo", "--input", str(tmp_path / "x.json"), "--output", str(tmp_path)]) == 2
    assert "JSON array, JSON lines or CSV" in capsys.readouterr().err


def test_without_a_word_it_helps(capsys):
    assert run([]) == 0
    assert "demo" in capsys.readouterr().out


def test_the_module_is_the_command():
    command = [sys.executable, "-m", "jmsjca", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == f"jmsjca {__version__}\n"


def test_help_names_every_option(capsys):
    assert run(["demo", "--help"]) == 0
    text = capsys.readouterr().out
    for option in ("--input", "--airports", "--poison", "--crash", "--json", "--url", "--output"):
        assert option in text
