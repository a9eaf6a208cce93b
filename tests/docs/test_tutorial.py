"""The tutorial runs from its page, and each of its commands writes what the page shows."""

import os
import sys
from pathlib import Path

import pytest

from tests.docs.replay import TUTORIAL, MismatchError, replay, steps_of

ENVIRONMENT = {
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"]),
    "PYTHONPATH": str(TUTORIAL.parents[1]),
    "PYTHONWARNINGS": "error",
    "COLUMNS": "200",
}


def test_the_tutorial_runs(tmp_path):
    steps = steps_of(TUTORIAL.read_text())
    assert len([step for step in steps if step.file]) == 3
    assert len([step for step in steps if step.output]) > 7
    replay(steps, tmp_path, ENVIRONMENT)


def test_another_output_than_the_page_shows_is_found(tmp_path):
    page = '```console\n$ echo a pear\na pear\n$ echo "a fig of $((3 + 4))"\na fig of …\n```\n'
    replay(steps_of(page), tmp_path, ENVIRONMENT)
    with pytest.raises(MismatchError, match="a pear"):
        replay(steps_of(page.replace("\na pear", "\na plum")), tmp_path, ENVIRONMENT)
