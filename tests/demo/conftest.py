import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jmsjca.errors import ConfigurationError
from jmsjca.spark.java import find_java

HERE = Path(__file__).parent


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
        done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
        account = json.loads(file.read_text()) if file.exists() else {}
        print(done.stdout, done.stderr, json.dumps(account))
        return done, account

    return run
