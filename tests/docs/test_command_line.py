"""The page of the command line shows what the commands write."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from jmsjca.__main__ import run
from jmsjca.management.commands import app

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference" / "command-line.md").read_text()
ALL_PAGES = "\n".join(page.read_text() for page in DOCS.rglob("*.md"))
BLOCKS = re.findall(r"^```console\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
COMMANDS = [each for block in BLOCKS for each in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
MEASURED = re.compile(r"[+-]?\d+\.\d[\d.]*")
EXAMPLES = [tuple(each.split("\n", 1)) for each in COMMANDS]


@pytest.mark.parametrize("first", ["jmsjca send", "jmsjca queues --url", "jmsjca selector", "jmsjca explain"])
def test_the_page_has_an_example(first):
    assert any(command.startswith(first) for command, _ in EXAMPLES)


def test_each_example_writes_what_the_page_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("JMSJCA_URL", f"embedded://{tmp_path}/broker.db")
    monkeypatch.delenv("BROKER", raising=False)
    for command, output in EXAMPLES:
        program, *arguments = shlex.split(command)
        if program != "jmsjca" or arguments[0] == "dlq":  # the ids of dead letters differ each time
            continue
        run(arguments)
        written = capsys.readouterr()
        found = (written.out + written.err, output)
        if arguments[0] == "doctor":
            found = tuple(MEASURED.sub("N", text) for text in found)
        assert found[0] == found[1] or (arguments[0] == "send" and output == ""), command


def commands_of(group, *path):
    """Yield the name of each command, with its options."""
    for name in group.list_commands(typer.Context(group)):
        found = group.get_command(typer.Context(group), name)
        if hasattr(found, "list_commands"):
            yield from commands_of(found, *path, name)
        else:
            shown = [each for each in found.params if not getattr(each, "hidden", False)]
            yield " ".join((*path, name)), {option for each in shown for option in each.opts if option.startswith("--")}


COMMANDS_AND_OPTIONS = dict(commands_of(typer.main.get_command(app)))


@pytest.mark.parametrize("command", COMMANDS_AND_OPTIONS)
def test_every_command_and_option_is_documented(command):
    assert re.search(rf"[`$] ?(jmsjca )?{command}\b", PAGE)
    assert {option for option in COMMANDS_AND_OPTIONS[command] if option not in ALL_PAGES} == set()
