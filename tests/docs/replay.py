"""Replays a page: writes its files, runs its commands in one shell, and compares what they write with the page.

``python tests/docs/replay.py [URL]`` does so with the tutorial in a fresh environment, on a broker too if its URL is
given, and prints how long it took. Steps under the comment ``<!-- fresh -->`` are for a fresh environment only,
those under ``<!-- broker -->`` for a broker only.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

__all__ = ["BROKER", "TUTORIAL", "MismatchError", "Shell", "replay", "steps_of"]

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial" / "tutorial.md"
BROKER = "amqp://localhost:5672"  # in the tutorial
_BLOCK = re.compile(
    r"^(?:<!-- ([a-z ]+) -->\n)?```((?:python|toml) title=\"[^\"]+\"|console)\n(.*?)^```", re.MULTILINE | re.DOTALL
)
_DONE = "-- done --"
_NOTICE = re.compile(r"bash: line \d+: +\d+ (Killed|Terminated) ")  # of a job; an interactive shell shows another one


class MismatchError(AssertionError):
    """A command wrote something else than the page shows."""


class Step(NamedTuple):
    """A file to write, or a command to run with the output that the page shows."""

    needs: frozenset[str]
    file: str  # empty for a command
    text: str
    output: str


def steps_of(page):
    """Return the steps of a page, in their order."""
    return [step for needs, head, text in _BLOCK.findall(page) for step in _steps(frozenset(needs.split()), head, text)]


def _steps(needs, head, text):
    if head != "console":
        return [Step(needs, head.split('"')[1], text, "")]
    commands = (each.partition("\n") for each in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:])
    return [Step(needs, "", command, output) for command, _, output in commands]


class Shell:
    """A bash that runs commands one after the other, so that variables, folders and jobs last."""

    def __init__(self, folder, environment):
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, command):
        """Run a command and return what it wrote."""
        self._process.stdin.write(f"{command}\necho '{_DONE}'\n")
        self._process.stdin.flush()
        lines = []
        while (line := self._process.stdout.readline()) and not line.endswith(f"{_DONE}\n"):
            lines.append(line)
        lines = [line for line in lines if not _NOTICE.match(line)]
        return "".join(lines)

    @property
    def folder(self):
        """The folder that the shell is in."""
        return Path(self.run("pwd").strip())

    def close(self):
        """End the jobs and the shell."""
        self._process.communicate("kill $(jobs -p) 2> /dev/null; wait; exit\n")


def replay(steps, folder, environment, *, offered=frozenset()):
    """Run the steps in a folder, without those that need more than is offered.

    Raises:
        MismatchError: A command wrote something else than the page shows.
    """
    shell = Shell(folder, environment)
    try:
        for step in steps:
            if not step.needs <= offered:
                continue
            if step.file:
                (shell.folder / step.file).write_text(step.text)
            else:
                _compare(step, shell.run(step.text))
    finally:
        shell.close()


def _compare(step, written):
    shown = "".join(".*" if part == "…" else re.escape(part) for part in re.split("(…)", step.output.rstrip("\n")))
    shown = re.sub(r"(\\ )+", " +", shown)  # columns are as wide as their longest cell
    if not re.fullmatch(shown, written.rstrip("\n")):
        raise MismatchError(f"$ {step.text}\nwrote\n{written}\ninstead of\n{step.output}")


def main(*url):
    """Replay the tutorial in an environment of its own."""
    begun, page = time.monotonic(), TUTORIAL.read_text().replace(BROKER, "".join(url) or BROKER)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "clone", "--quiet", ROOT, f"{folder}/jmsjca"], check=True)
        clean = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
        offered = {"fresh", "broker"} if url else {"fresh"}
        replay(steps_of(page), folder, clean | {"COLUMNS": "200"}, offered=offered)
    print(f"The tutorial ran in {(time.monotonic() - begun) / 60:.1f} minutes.")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
