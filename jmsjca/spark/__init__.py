"""The "jms" data source of Apache Spark: queues and topics as batch and streaming tables.

::

    from jmsjca.spark import register

    register(spark)
    messages = spark.readStream.format("jms").options(url=…, destination="orders", stagingLocation=…).load()

Needs ``pip install "jmsjca[spark]"`` on the driver and on every executor.
"""

import sys

from jmsjca.errors import ProviderNotInstalledError

try:
    from jmsjca.spark.data_source import JmsDataSource, register
    from jmsjca.spark.rejections import dead_letter
    from jmsjca.spark.replies import replies, reports
    from jmsjca.spark.schema import SCHEMA
    from jmsjca.spark.writer import ForeachWriter
except ImportError as error:
    if (error.name or "").partition(".")[0] not in ("pyspark", "pyarrow"):
        raise
    raise ProviderNotInstalledError(
        f'jmsjca.spark needs {error.name}, which {sys.executable} does not have: pip install "jmsjca[spark]"; or set'
        " PYSPARK_PYTHON to the Python that has it, because Spark's workers run the first python3 of the PATH."
    ) from error

__all__ = ["SCHEMA", "ForeachWriter", "JmsDataSource", "dead_letter", "register", "replies", "reports"]
