"""The page of the command line shows what the commands write."""

import re
import shlex
from pathlib import Path

import pytest

from jmsjca.management.cli import run

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
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
