"""The programs of Spark, such as spark-submit, run as a user runs them."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark
from spark_session import java_home

SECONDS = 1000


def run_program(name: str, *arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program of Spark in a folder, to its end.

    Args:
        name: The name of the program.
        arguments: Its arguments.
        folder: The folder in which it is called.
        environment: Changes of the environment.
    """
    home = Path(pyspark.__file__).parent
    usual = {"JAVA_HOME": java_home(), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    return subprocess.run(
        [home / "bin" / name, *arguments],
        cwd=folder,
        env=os.environ | usual | {"SPARK_HOME": str(home)} | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
