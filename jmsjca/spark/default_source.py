"""The module ``pyspark_jmsjca`` of the wheel, by which Spark knows ``format("jms")`` without registration.

Spark imports each module whose name begins with ``pyspark_``, and registers its ``DefaultSource``. The import must not
fail, because that would end the search for all other data sources, too: without pyarrow there is no ``DefaultSource``.
"""

from contextlib import suppress

with suppress(ImportError):
    from jmsjca.spark import JmsDataSource

    DefaultSource = JmsDataSource
