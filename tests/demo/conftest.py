import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jmsjca.demo.progress import StallDetector
from jmsjca.errors import ConfigurationError
from jmsjca.spark.java import find_java

HERE = Path(__file__).parent
GLANCE = 1.0  # seconds between two looks at a run
PATIENCE = 240.0  # seconds in which a run writes nothing, after which it hangs


@pytest.fixture(scope="session", autouse=True)
def java():
    """A missing Java fails in CI; elsewhere it skips, and says so."""
    try:
        return find_java()
    except ConfigurationError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture
def sample():
    return ["--input", str(HERE / "data" / "flights.csv"), "--airports", str(HERE / "data" / "airports.csv")]


@pytest.fixture
def flights():
    """The full flights file, where the environment names its folder."""
    folder = os.environ.get("JMSJCA_DATA")
    if not folder:
        pytest.skip("JMSJCA_DATA does not name a folder with flights-20k.json and airports.csv")
    return ["--input", f"{folder}/flights-20k.json", "--airports", f"{folder}/airports.csv"]


@pytest.fixture
def demo(tmp_path):
    """Runs ``jmsjca demo`` as a user would; gives its exit status, its output and its account."""

    def run(*arguments):
        file = tmp_path / "account.json"
        command = [sys.executable, "-m", "jmsjca", "demo", "--output", str(tmp_path), "--json", str(file), *arguments]
        done = run_while_it_writes(command, tmp_path)
        account = json.loads(file.read_text()) if file.exists() else {}
        print(done.stdout, done.stderr, json.dumps(account))
        return done, account

    return run


def run_while_it_writes(command, folder):
    """Run a command to its end; kill it, and fail, if it writes nothing to the folder for a long time."""
    patience = StallDetector(PATIENCE)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while True:
            try:
                output, errors = process.communicate(timeout=GLANCE)
            except subprocess.TimeoutExpired:
                if patience.is_over(latest_write(folder)):
                    process.kill()
                    output, errors = process.communicate()
                    pytest.fail(f"The run wrote nothing for {PATIENCE:g} s: {output}{errors}")
            else:
                return subprocess.CompletedProcess(command, process.returncode, output, errors)


def latest_write(folder):
    """The time of the latest change of a file below a folder, in nanoseconds."""
    times = [0]
    for path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # the run removes files meanwhile
                times.append(Path(path, name).stat().st_mtime_ns)
    return max(times)
