"""Writes the releases and hashes of what the extras install into ``.ci/locked.txt``, below the comments at its head.

``python -m tests.support.lock ENVIRONMENT`` runs pip-compile of an environment that has pip-tools.
"""

import subprocess
import sys
from pathlib import Path

LOCK = Path(".ci/locked.txt")
OPTIONS = (
    "--quiet --extra all --unsafe-package jmsjca --generate-hashes --strip-extras --no-header --no-annotate "
    "--no-emit-index-url --no-emit-trusted-host --no-emit-find-links"
)


def main(environment):
    made = Path(environment, "locked.txt")
    compiler = Path(environment, "bin", "pip-compile")
    subprocess.run([compiler, *OPTIONS.split(), "--output-file", made, "pyproject.toml"], check=True)
    head = [line for line in LOCK.read_text().splitlines() if line.startswith("#")]
    entries = [line for line in made.read_text().splitlines() if line and not line.startswith("#")]
    LOCK.write_text("\n".join([*head, "", *entries, ""]))


if __name__ == "__main__":
    main(*sys.argv[1:])
