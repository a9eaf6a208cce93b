"""A query over "receiving" into Parquet, in a process of its own: ``python -m receiving_query FOLDER OPTIONS``."""

import json
import sys
from pathlib import Path

from receiving_source import ReceivingSource
from spark_session import spark_session

__all__ = ["main"]


def main(folder: Path, options: dict[str, str]) -> None:
    """Run the query until it is killed."""
    with spark_session(folder) as spark:
        spark.dataSource.register(ReceivingSource)
        stream = spark.readStream.format("receiving").options(**options).load()
        sink = stream.writeStream.format("parquet").option("path", str(folder / "out"))
        sink.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
