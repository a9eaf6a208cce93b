"""Settings of all tests."""

import gc
import os

import matrix_sample
import pytest
from hypothesis import settings
from spark_home import spark_home

# The same examples in every run, and none that fails because the machine is busy.
settings.register_profile(
    "jmsjca", deadline=None, derandomize=True, max_examples=int(os.environ.get("JMSJCA_EXAMPLES", "50"))
)
settings.load_profile("jmsjca")

# Of all processes of Spark that tests start.
if home := spark_home():
    os.environ.setdefault("SPARK_HOME", str(home))


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(matrix_sample)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave the tests out of the garbage collector's walks, which took a second each: millions of objects stay."""
    del session
    gc.collect()
    gc.freeze()
