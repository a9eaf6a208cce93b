"""Selectors as conditions of SQL, for SQLite."""

from jmsjca.selectors.sql.layout import Condition, Layout
from jmsjca.selectors.sql.translation import translate

__all__ = ["Condition", "Layout", "translate"]
