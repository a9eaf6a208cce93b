"""Management: the operator's tools. This room may import every other room; no room imports it."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jmsjca.management.beans import MBeanServer
    from jmsjca.management.insight import Insight

__all__ = ["Insight", "MBeanServer"]

_LAZY = {"Insight": "insight", "MBeanServer": "beans"}  # imported on first use: the command line starts faster


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
