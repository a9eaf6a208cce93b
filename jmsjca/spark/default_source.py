"""The module ``pyspark_jmsjca`` of the wheel, by which Spark knows ``format("jms")`` without registration.

Spark imports each module with a name that begins with ``pyspark_``, and registers its ``DefaultSource``. The import
must not fail, because Spark would then find no other data sources either. So if pyarrow is not installed, this module
has no ``DefaultSource``.
"""

from contextlib import suppress

with suppress(ImportError):
    from jmsjca.spark import JmsDataSource

    DefaultSource = JmsDataSource
