"""The end of the processes that the main job kills."""

import subprocess
import sys

import psutil
import pytest

from jmsjca.demo.processes import DemoError, await_end

PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def grandchild():
    """A process whose parent does not ask how it ended."""
    with subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        yield psutil.Process(int(parent.stdout.readline()))
        parent.stdin.close()


def test_who_only_waits_for_a_parent_has_ended(grandchild):
    """In a container nobody may ever ask; waiting for that would be for ever."""
    grandchild.kill()
    while grandchild.status() != psutil.STATUS_ZOMBIE:
        pass
    await_end([grandchild], 0)


def test_who_does_not_end_is_told(grandchild):
    with pytest.raises(DemoError, match=f"{grandchild.pid} were killed and did not end in 0 s"):
        await_end([grandchild], 0)
