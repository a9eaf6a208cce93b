"""The search for a Java runtime that Spark can use."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from jmsjca.errors import ConfigurationError

__all__ = ["find_java"]

_MIN_RELEASE = 17


def find_java() -> Path:
    """Return a Java home for Spark: ``JAVA_HOME``, or the home of the ``java`` command on the path.

    Raises:
        ConfigurationError: Neither is Java 17 or later; the message names the packages to install.
    """
    found: list[str] = []
    for home in _candidates():
        release = _release(home)
        if release >= _MIN_RELEASE:
            return home
        found.append(f"{home} ({release or 'not a full Java'})")
    seen = f" Found only: {', '.join(found)}." if found else ""
    raise ConfigurationError(
        f"Spark needs a full Java {_MIN_RELEASE} or later.{seen} Install one (Debian, Ubuntu: apt-get install "
        "openjdk-17-jre-headless; macOS: brew install openjdk@17) or let JAVA_HOME name it."
    )


def _candidates() -> list[Path]:
    homes: list[Path] = []
    if os.environ.get("JAVA_HOME"):
        homes.append(Path(os.environ["JAVA_HOME"]))
    java = shutil.which("java")
    if java:
        homes.append(Path(java).resolve().parent.parent)
    return homes


def _release(home: Path) -> int:
    # Spark starts Java with this module, which a reduced runtime lacks.
    command = [str(home / "bin" / "java"), "--add-modules", "jdk.incubator.vector", "-version"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)  # noqa: S603  # of JAVA_HOME
    except (OSError, subprocess.SubprocessError):
        return 0
    version = re.search(r'version "(\d+)', result.stderr)
    return int(version[1]) if version else 0


if __name__ == "__main__":
    try:
        print(f"Java for Spark: {find_java()}")  # noqa: T201  # the purpose of this command
    except ConfigurationError as problem:
        sys.exit(str(problem))
