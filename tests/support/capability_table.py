"""Writes docs/reference/capabilities.md from profiles and evidence: ``python -m tests.support.capability_table``."""

import ast
import inspect
from dataclasses import fields
from pathlib import Path

from jmsjca.providers.amqp.provider import BROKERS as AMQP
from jmsjca.providers.embedded.provider import CAPABILITIES as EMBEDDED
from jmsjca.providers.java.clients import CLIENTS
from jmsjca.providers.stomp.provider import BROKERS as STOMP
from jmsjca.spi import Capabilities
from tests.support.evidence import gaps_of

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "capabilities.md"
NOTES = Path(__file__).with_name("capability_notes.md")
JAVA = [client.profile for client in CLIENTS.values()]
PROTOCOLS = {"AMQP 1.0": AMQP, "STOMP": STOMP, "a client of Java": JAVA}

HEAD = """\
<!-- Written by python -m tests.support.capability_table from the data in jmsjca/providers. Do not edit. -->
# What each broker can do

Use this page to choose a broker and a protocol. For example, a handler that receives and sends in one transaction needs
`atomic`:

```python
from jmsjca import ConnectionFactory

with ConnectionFactory("embedded://shop").create_connection() as connection:
    print(connection.capabilities.atomic)  # True
```

A missing capability is refused with `NotSupportedError`; it is never weakened. The tests check this page: a connection
must report exactly these values, and for each capability that a broker has, every case of the contract suite must pass
on that broker.

The values of `units` and `give_back` are words:

- `units`: with *any*, a unit may take any received messages. With *receive*, it takes all messages of one
  `Consumer.receive`.
- `give_back`: with *uncounted*, a released message returns to the broker, and its delivery count stays. With *counted*,
  the delivery count grows. With *local*, the message stays with its consumer until the consumer is closed
  ([Prefetched messages](network.md#prefetched-messages)).
"""


def missing(capabilities):
    """The names of what a connection lacks, or can do less well than the best."""
    return {f.name for f in fields(Capabilities) if getattr(capabilities, f.name) not in {True, "uncounted", "any"}}


def meanings():
    """What each capability means, from its line in `jmsjca.spi`."""
    source = inspect.getsource(Capabilities)
    lines = source.splitlines()
    assignments = [node for node in ast.parse(source).body[0].body if isinstance(node, ast.AnnAssign)]
    return {node.target.id: lines[node.lineno - 1].split("#:")[1].strip().replace("``", "`") for node in assignments}


def page():
    """The whole page."""
    columns = [("embedded", "", EMBEDDED)]
    columns += [(b.name, protocol, b.capabilities) for protocol, brokers in PROTOCOLS.items() for b in brokers]
    parts = [HEAD, table(columns), NOTES.read_text()]
    parts += [gaps(broker, protocol) for protocol, brokers in PROTOCOLS.items() for broker in brokers]
    return "\n".join(parts)


def table(columns):
    rows = [["capability", *[f"{name}<br>{protocol}".removesuffix("<br>") for name, protocol, _ in columns]]]
    rows.append(["---"] * len(rows[0]))
    for name, meaning in meanings().items():
        rows.append([f"`{name}`: {meaning}", *[cell(getattr(c, name)) for _, _, c in columns]])
    return lines(rows)


def gaps(broker, protocol):
    rows = [["capability", "what the broker did", "where it is written"], ["---"] * 3]
    rows += [[", ".join(names), text(observed), text(reference)] for (observed, reference), names in grouped(broker)]
    return f"### {broker.name} {broker.release} over {protocol}\n\n{lines(rows)}"


def grouped(broker):
    """The evidence of all gaps, each with its capabilities. "As shared." stands for the evidence of `shared`."""
    found = {gap.capability: (gap.observed, gap.reference) for gap in gaps_of(broker)}

    def evidence(name):
        observed, reference = found[name]
        return evidence(observed[3:-1]) if reference == "The same" else found[name]

    capabilities = {}
    for name in found:
        capabilities.setdefault(evidence(name), []).append(f"`{name}`")
    return capabilities.items()


def lines(rows):
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def cell(value):
    return {True: "yes", False: "no"}.get(value, value)


def text(words):
    return words.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page())
