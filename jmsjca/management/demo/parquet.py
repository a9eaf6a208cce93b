"""Reads the folders of Parquet files that Spark writes."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["read_parquet"]


def read_parquet(folder: Path, columns: Sequence[str] | None = None) -> Any:
    """Read all files below a folder as one Arrow table.

    Args:
        folder: What Spark wrote, a folder per batch.
        columns: Which columns; None for all.
    """
    dataset: Any = import_module("pyarrow.dataset")  # slow to import, used at the end of a run
    files = sorted(str(path) for path in folder.glob("batch=*/*.parquet"))
    return dataset.dataset(files, format="parquet").to_table(columns=columns)
