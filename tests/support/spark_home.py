"""A home of the installed Spark whose Python processes start fast."""

import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path


def spark_home() -> Path | None:
    """Make a home in this environment, without the archive of Spark's Python part: workers import the package.

    Spark waits 10 seconds for a worker that it starts, and that cannot be changed. From the archive, which has no
    compiled modules, a worker starts in three times the time of the package, on a busy machine in more than 10 seconds.

    Returns:
        None if Spark is not installed.
    """
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None:
        return None
    package = Path(spark.origin).parent
    home = Path(sys.prefix) / "spark-home" / package.parent.name  # one for each Spark that is installed here
    home.mkdir(parents=True, exist_ok=True)
    for each in package.iterdir():
        if each.name != "python":
            with suppress(FileExistsError):  # another run makes the same home
                (home / each.name).symlink_to(each)
    return home
