"""Writes the tables of Spark's options, the connector's fields and the fields of specs from their declarations.

``python -m tests.support.option_tables`` replaces the tables in docs/how-to/spark.md, docs/how-to/connector.md and
docs/reference/activation-spec.md.
"""

import re
from pathlib import Path

from annotated_types import Ge, Gt, Le
from pydantic_core import PydanticUndefined

from jmsjca.config.activation_spec import ActivationSpec
from jmsjca.connector.config import DOCUMENTED_NAMES, ConnectorConfig
from jmsjca.spark.options import JmsOptions, SinkOptions, SourceOptions

DOCS = Path(__file__).parents[2] / "docs"
BEGIN = "<!-- Written by python -m tests.support.option_tables; do not edit. -->\n"
END = "<!-- End of the table. -->\n"
SEE = {
    "credentials": "[Passwords](spark-clusters.md#passwords)",
    "subscription": "[Read a topic](#read-a-topic)",
    "columns": "[SQL: tables and views](spark-jobs.md#sql-tables-and-views)",
    "bodyFormat": "[Typed columns](#typed-columns)",
    "stagingLocation": "[The staging location](#the-staging-location)",
    "stagingCredentials": "[Staging in a bucket](staging-bucket.md)",
    "prefetchEpochs": "[Stage the next batch early](#stage-the-next-batch-early)",
    "guarantee": "[Read at least once](#read-at-least-once), [Write exactly once](#write-exactly-once)",
    "queryName": "[Write exactly once](#write-exactly-once)",
    "input_destination": "[Event stores](event-stores.md)",
    "definitions": "[Definitions](business-objects.md#definitions)",
    "configuration_meta_object": "[Meta-objects](meta-objects.md)",
    "reply_to_destination": "[Requests](connector-requests.md)",
    "container_managed_events": "[Guaranteed delivery](guaranteed-delivery.md)",
    "duplicate_event_elimination": "[Guaranteed delivery](guaranteed-delivery.md)",
}
SEE_SPEC = {
    "destination": "[Names to look up](configuration.md)",
    "options": "[Options](#options)",
    "selector": "[Selectors](selectors.md)",
    "selector_variables": "[Selectors](#selectors)",
    "redelivery_handling": "[Redelivery handling](redelivery.md)",
    "transaction": "[Transactions](../how-to/transactions.md#what-a-listener-does)",
    "context_name": "[Context in the log](listeners.md#context-in-the-log)",
    "mbean_name": "[Beans](beans.md)",
}
UNITS = {"PollFrequency": "milliseconds", "RestartRetryInterval": "minutes"}


def spark():
    """Return the options of sources and sinks; the third column has the roles of an option."""
    source, sink, both = (each.__pydantic_fields__ for each in (SourceOptions, SinkOptions, JmsOptions))
    yield from (["option", "default", "of", "meaning"], ["---"] * 4)
    for name, info in {**source, **sink, **both}.items():
        roles = [role for role, known in (("source", source), ("sink", sink)) if name in known]
        default = "all" if name == "columns" else shown(info.default)
        yield [f"`{name}`", default, ", ".join(roles), meaning(name, info)]


def connector():
    """Return the fields of a connector with their documented names."""
    names = {name: [] for name in ConnectorConfig.model_fields}
    for documented, name in DOCUMENTED_NAMES.items():
        names[name].append(f"`{documented}`{f' ({UNITS[documented]})' if documented in UNITS else ''}")
    yield from (["field", "documented names", "default", "meaning"], ["---"] * 4)
    for name, info in ConnectorConfig.model_fields.items():
        default = "required" if info.is_required() else shown(info.default)
        yield [f"`{name}`", ", ".join(names[name]), default, meaning(name, info)]


def activation_spec():
    """Return the fields of a spec with the properties of JMSJCA's manual."""
    yield from (["field", "property", "default", "meaning"], ["---"] * 4)
    for name, info in ActivationSpec.model_fields.items():
        default = "required" if info.is_required() else shown(info.default)
        yield [f"`{name}`", f"`{info.serialization_alias}`", default, meaning(name, info, SEE_SPEC)]


def shown(default):
    """Return a default; empty for none, and for one that depends on other fields."""
    if default in (None, "", (), PydanticUndefined):
        return ""
    if type(default) is int and default >= 1 << 20:
        return f"`{default >> 20} MiB`"
    return f"`{default:.15g}`" if isinstance(default, float) else f"`{default}`"


def meaning(name, info, pages=SEE):
    """Return the text of a field with its range and the page about it."""
    text = " ".join(info.description.split()).replace("``", "`").replace("|", "\\|")
    words = {Ge: "at least {0.ge:,.0f}", Gt: "more than {0.gt:,.0f}", Le: "at most {0.le:,.0f}"}
    limits = ", ".join(words[type(each)].format(each) for each in info.metadata if type(each) in words)
    see = f" See {pages[name]}." if name in pages else ""
    return f"{text}{limits and f' {limits.capitalize()}.'}{see}"


def written(page, rows):
    """Return the text of a page with its table renewed."""
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: f"{BEGIN}{table}{END}", page, flags=re.DOTALL)


PAGES = {"how-to/spark.md": spark, "how-to/connector.md": connector, "reference/activation-spec.md": activation_spec}

if __name__ == "__main__":
    for page, rows in PAGES.items():
        (DOCS / page).write_text(written((DOCS / page).read_text(), rows()))
