"""Message selectors (JMS 3.1, section 3.8): parsed, evaluated, translated to SQL, and built from templates."""

from jmsjca.selectors.selector import Selector
from jmsjca.selectors.sql import Condition, Layout, translate
from jmsjca.selectors.template import build_indexed_selector, build_selector, substitute, substitute_indexed

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
