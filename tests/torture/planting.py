"""Plants faults into copies of the source, and runs commands there."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["ROOT", "copied_source", "plant", "run_in"]

ROOT = Path(__file__).parents[2]
_UNFINISHED = "*.pyc.*"  # files that another process is writing


@contextmanager
def copied_source() -> Iterator[Path]:
    """Yield a temporary folder with a copy of the package, the tests and their settings."""
    with tempfile.TemporaryDirectory(prefix="jmsjca-fault-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder)
        for name in ("jmsjca", "tests"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns(_UNFINISHED))
        shutil.copy(ROOT / "pyproject.toml", copy)
        yield copy


def plant(copy: Path, file: str, old: str, new: str) -> None:
    """Replace a text in a copy.

    Args:
        copy: The folder with the copy.
        file: Path of the file below ``jmsjca``.
        old: The text that is replaced.
        new: The replacement.

    Raises:
        ValueError: ``old`` does not occur exactly once, because the source has changed: the fault must follow it.
    """
    path = copy / "jmsjca" / file
    text = path.read_text()
    if text.count(old) != 1:
        raise ValueError(f"{old!r} occurs {text.count(old)} times in {file}, not once: correct the fault.")
    path.write_text(text.replace(old, new))
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        compiled.unlink()  # the time stamp in it has whole seconds, and may be that of the changed file


def run_in(copy: Path, arguments: list[str], timeout: float, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``python -m …`` on a copy, where pytest keeps its temporary folders too.

    In a folder that several runs share, each removes old ones of the others, and ends in an error if one has gone
    while it reads the folder: then nothing is said of the tests.

    Args:
        copy: The folder with the copy.
        arguments: The module and its arguments.
        timeout: Seconds after which the process is killed.
        **environment: Further environment variables.

    Raises:
        subprocess.TimeoutExpired: The process did not end in time.
    """
    path = {"PYTHONPATH": f"{copy}:{copy}/tests/support", "PYTEST_DEBUG_TEMPROOT": str(copy)}
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=copy,
        env={**os.environ, **path, **environment},
        timeout=timeout,
        check=False,
        text=True,
        errors="replace",
        capture_output=True,
    )
