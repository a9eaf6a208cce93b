"""The commands and the data of the documentation: each command exists with its options, each file can be read."""

import json
import re
import shlex
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer
import yaml

from jmsjca.connector import Connector
from jmsjca.connector.definitions import BusinessObjectDefinitions
from jmsjca.management.commands import app
from tests.parts import SERIES

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "api"),
]
READERS = {"json": json.loads, "toml": tomllib.loads, "yaml": lambda text: list(yaml.safe_load_all(text))}
INLINE = re.compile(r"(?<!`)`(?:\.venv/bin/)?(jmsjca [a-z][^`]*)`(?!`)")
PROGRAM = re.compile(r"(?:^|\s)(?:\S+/)?jmsjca (?=[a-z-])")


def name(page):
    return page.relative_to(ROOT).as_posix().removeprefix("docs/").removesuffix(".md")


def blocks(page, *languages):
    """Return the blocks of a page in some languages, with their language."""
    found = re.findall(r"^```(\w+)[^\n]*\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    return [(language, text) for language, text in found if language in languages]


def shown_commands():
    """Yield the commands of the blocks, each with its page."""
    for page in PAGES:
        for language, text in blocks(page, "console", "sh"):
            for line in text.splitlines():
                if language == "sh" or line.startswith("$ "):
                    yield name(page), line.removeprefix("$ ")


def arguments_of(command):
    """Return the arguments of `jmsjca` in a command of a shell, or None for another command."""
    place = PROGRAM.search(command)
    words = shlex.split(command[place.end() :], comments=True) if place else []
    ends = [index for index, word in enumerate(words) if word in {">", "2>", "|", "&"}]
    return words[: min(ends, default=len(words))] or None


def resolve(words):
    """Return the command that the words begin with, its name, and the other words."""
    command, path = typer.main.get_command(app), "jmsjca"
    while hasattr(command, "commands") and words:
        assert words[0] in command.commands, f"{path} has no {words[0]!r}"
        command, path, words = command.commands[words[0]], f"{path} {words[0]}", words[1:]
    return command, path, words


COMMANDS = [(page, words) for page, command in shown_commands() if (words := arguments_of(command))]
MENTIONED = sorted({(name(page), text) for page in PAGES for text in INLINE.findall(page.read_text())})


def test_there_are_commands():
    assert len(COMMANDS) > 30
    assert len(MENTIONED) > 30


@pytest.mark.parametrize(("page", "words"), COMMANDS, ids=[f"{page}: {' '.join(words)}" for page, words in COMMANDS])
def test_a_command_of_an_example_takes_its_arguments(page, words, monkeypatch):
    monkeypatch.setenv("JMSJCA_URL", "embedded://shop")  # as the page says, or the one of an option
    command, path, rest = resolve(words)
    with command.make_context(path, rest):
        pass


@pytest.mark.parametrize(("page", "text"), MENTIONED, ids=[f"{page}: {text}" for page, text in MENTIONED])
def test_a_command_in_a_sentence_exists_with_its_options(page, text):
    command, _, rest = resolve(text.split()[1:])
    known = {option for each in command.params for option in each.opts} | {"--help"}
    assert {word.partition("=")[0] for word in rest if word.startswith("--")} <= known


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, *READERS)], ids=name)
def test_the_data_of_a_page_can_be_read(page):
    for language, text in blocks(page, *READERS):
        assert READERS[language](text)


@pytest.mark.parametrize("page", [page for page in PAGES if "make " in page.read_text()], ids=name)
def test_a_target_of_make_exists(page):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = re.findall(r"(?:^\$ |`)make ([a-z-]+)", page.read_text(), re.MULTILINE)
    assert set(named) <= targets


@pytest.mark.parametrize("page", [page for page in PAGES if "python -m tests" in page.read_text()], ids=name)
def test_a_module_of_the_tests_exists(page):
    for module in re.findall(r"python -m (tests[\w.]*)", page.read_text()):
        assert find_spec(module), module


def test_what_make_runs_exists():
    words = "".join(SERIES.values()).split()
    assert all(find_spec(word) for word in words if word.startswith("tests."))
    assert all((ROOT / word).exists() for word in words if word.startswith("tests/"))


def test_the_section_of_a_connector_makes_a_connector(tmp_path):
    [(_, text)] = blocks(ROOT / "docs" / "how-to" / "connector.md", "toml")
    file = tmp_path / "jmsjca.toml"
    file.write_text(text.replace("shop.handlers:on_order", "queue:hub"))
    assert isinstance(Connector.from_config(file, "hub"), Connector)  # a wrong field is an error


def test_the_information_of_a_verb_is_read(tmp_path):
    [(_, text)] = blocks(ROOT / "docs" / "how-to" / "connector-requests.md", "toml")
    file = tmp_path / "definitions.toml"
    file.write_text(text)
    assert BusinessObjectDefinitions.from_file(file)["Customer"].verbs["Retrieve"].startswith("response_selector=")


def test_the_module_that_runs_the_contract_is_the_one_that_passes_it():
    """tests/docs/test_provider_example.py runs that of the other page."""
    _, (_, shown) = blocks(ROOT / "docs" / "how-to" / "providers.md", "python")
    tested = [text for _, text in blocks(ROOT / "docs" / "how-to" / "provider-example.md", "python")]
    assert shown.replace("myscheme://127.0.0.1:1234", "toy://test") in tested
