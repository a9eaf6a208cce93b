"""The tutorial and other pages with files run from their pages, and each command writes what the page shows."""

import os
import sys
from pathlib import Path
from socket import socket

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


def test_the_commands_about_worker_processes_run(tmp_path):
    steps = steps_of((TUTORIAL.parents[1] / "how-to" / "worker-processes.md").read_text())
    assert [step.file for step in steps if step.file] == ["worker.py"]
    assert "shipped a pear\n" in [step.output for step in steps]
    replay(steps, tmp_path, ENVIRONMENT)


def test_the_whole_service_runs(tmp_path):
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    page = (TUTORIAL.parents[1] / "how-to" / "whole-service.md").read_text()
    steps = [step for step in steps_of(page.replace("8080", port)) if not step.text.startswith("pip install")]
    assert [step.file for step in steps if step.file] == ["orders.py", "test_orders.py"]
    replay(steps, tmp_path, ENVIRONMENT)


def test_another_output_than_the_page_shows_is_found(tmp_path):
    page = '```console\n$ echo a pear\na pear\n$ echo "a fig of $((3 + 4))"\na fig of …\n```\n'
    replay(steps_of(page), tmp_path, ENVIRONMENT)
    with pytest.raises(MismatchError, match="a pear"):
        replay(steps_of(page.replace("\na pear", "\na plum")), tmp_path, ENVIRONMENT)
