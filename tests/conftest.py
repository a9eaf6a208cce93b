"""Settings of all tests."""

import os

from hypothesis import settings
from spark_home import spark_home

# The same examples in every run, and none that fails because the machine is busy.
settings.register_profile("jmsjca", deadline=None, derandomize=True)
settings.load_profile("jmsjca")

# Of all processes of Spark that tests start.
if home := spark_home():
    os.environ.setdefault("SPARK_HOME", str(home))
