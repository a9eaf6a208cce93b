"""The first program of the front page runs as pasted, in an empty folder, and writes what the page shows."""

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

from jmsjca.spi import Capabilities

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "README.md").read_text()


def test_the_first_program_runs_as_pasted(tmp_path):
    program = re.search(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[1]
    shown = re.search(r"^\$ python first.py\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[1]
    (tmp_path / "first.py").write_text(program)
    run = subprocess.run(
        [sys.executable, "-W", "error", "first.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (run.stdout, run.stderr, run.returncode) == (shown, "", 0)
    assert shown
    assert [path.name for path in tmp_path.iterdir()] == ["first.py"]


def test_the_number_of_capabilities_is_right():
    assert f"lists {len(fields(Capabilities))} capabilities" in " ".join(PAGE.split())
