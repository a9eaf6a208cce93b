"""Message selectors (JMS 3.1, section 3.8): read, evaluated, translated to SQL, and built from templates."""

from jmsjca.selectors.builder import build_indexed_selector, build_selector
from jmsjca.selectors.selector import Selector
from jmsjca.selectors.sql import Condition, Layout, translate
from jmsjca.selectors.substitution import substitute, substitute_indexed

__all__ = [
    "Condition",
    "Layout",
    "Selector",
    "build_indexed_selector",
    "build_selector",
    "substitute",
    "substitute_indexed",
    "translate",
]
