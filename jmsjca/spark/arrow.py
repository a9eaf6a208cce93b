"""Where pyarrow, which has no types, enters."""

from importlib import import_module
from typing import Any

__all__ = ["ipc", "pa"]

pa: Any = import_module("pyarrow")
ipc: Any = import_module("pyarrow.ipc")
