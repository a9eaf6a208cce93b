"""Deployment descriptors: ``jmsjca.toml``, ``ra.xml``, ``ejb-jar.xml`` and its companions read into one model."""

from jmsjca.descriptors.deployment import Deployment, read
from jmsjca.descriptors.migration import ReportEntry, to_toml

__all__ = ["Deployment", "ReportEntry", "read", "to_toml"]
