"""Every element that a descriptor of a message-driven bean can have is read, or it is in the report.

``JMSJCA_ALL_STEPS=1`` visits all of them; otherwise a sample.
"""

import os
import random
import tomllib
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from jmsjca.descriptors import ReportEntry, read
from jmsjca.errors import ConfigurationError

SAMPLE, SEED = 120, 20
GRAMMARS = {
    schema: {element: found.split() for element, found in grammar.items()}
    for schema, grammar in tomllib.loads(Path(__file__).with_name("elements.toml").read_text("utf-8")).items()
}
BEAN = {
    "ejb-name": "orders",
    "message-destination-link": "in",
    "message-destination-type": "javax.jms.Topic",
    "resource-ref": {"res-ref-name": "jms/CF", "res-type": "javax.jms.ConnectionFactory"},
    "message-destination-ref": {
        "message-destination-ref-name": "jms/out",
        "message-destination-type": "javax.jms.Topic",
    },
    "resource-env-ref": {"resource-env-ref-name": "jms/env", "resource-env-ref-type": "javax.jms.Queue"},
}
VALUES = {  # the texts that mean something; other elements have their own name
    "ejb-name": "orders",
    "message-destination-link": "other",
    "message-destination-name": "in",
    "message-destination-type": "javax.jms.Queue",
    "destination-type": "javax.jms.Queue",
    "subscription-durability": "Durable",
    "acknowledge-mode": "Dups-ok-acknowledge",
    "transaction-type": "Bean",
    "trans-attribute": "NotSupported",
    "method-name": "ejbTimeout",
    "res-ref-name": "jms/CF",
    "res-type": "javax.jms.QueueConnectionFactory",
    "message-destination-ref-name": "jms/out",
    "resource-env-ref-name": "jms/env",
    "resource-env-ref-type": "javax.jms.Topic",
    "activation-config-property-name": "subscriptionName",
    "max-pool-size": "4",
    "max-beans-in-free-pool": "4",
}
ADAPTER = """<connector><resourceadapter><outbound-resourceadapter><connection-definition>
<connectionfactory-interface>javax.jms.ConnectionFactory</connectionfactory-interface>
</connection-definition></outbound-resourceadapter></resourceadapter></connector>"""
ROOTS = {"ejb-jar": "ejb-jar", "jboss-ejb3": "ejb-jar"}
NAMESPACES = {"jboss-ejb3": {"xmlns": "http://www.jboss.com/xml/ns/javaee"}}
KEYS = {  # without these, an element says nothing about the bean
    "activation-config-property": ("activation-config-property-name",),
    "container-transaction": ("method",),
    "env-entry": ("env-entry-name",),
    "ejb": ("ejb-name",),
    "message-destination": ("message-destination-name",),
    "message-destination-descriptor": ("message-destination-name",),
    "message-destination-ref": ("message-destination-ref-name", "message-destination-type", "mapped-name"),
    "message-driven": ("ejb-name",),
    "method": ("ejb-name",),
    "resource-adapter-binding": ("ejb-name",),
    "resource-description": ("res-ref-name",),
    "resource-env-description": ("resource-env-ref-name",),
    "resource-env-ref": ("resource-env-ref-name", "resource-env-ref-type", "mapped-name"),
    "resource-ref": ("res-ref-name", "res-type"),
    "weblogic-enterprise-bean": ("ejb-name",),
}


def grammar_of(schema: str) -> dict[str, list[str]]:
    grammar = {name: list(found) for name, found in GRAMMARS[schema].items()}
    if schema == "jboss-ejb3":
        for name, found in GRAMMARS["ejb-jar"].items():
            grammar[name] = list(dict.fromkeys(found + grammar.get(name, [])))
    return grammar


def paths(schema: str) -> Iterator[tuple[str, ...]]:
    """Yield the path of each element, without the root."""
    grammar, root = grammar_of(schema), ROOTS.get(schema, schema)

    def below(path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for name in grammar.get(path[-1], ()):
            if name not in path and name not in ("session", "entity", "relationships"):
                yield (*path[1:], name)
                yield from below((*path, name))

    return below((root,))


def add(parent: ET.Element, name: str, value: object) -> ET.Element:
    element = ET.SubElement(parent, name)
    if isinstance(value, dict):
        for child, text in value.items():
            add(element, child, text)
    else:
        element.text = str(value)
    return element


def document(schema: str, path: tuple[str, ...], *, whole: bool) -> str:
    """Return a descriptor with the elements on a path and their keys; the last one only if it is whole."""
    parent = root = ET.Element(ROOTS.get(schema, schema), NAMESPACES.get(schema, {}))
    if schema == "ejb-jar":
        add(add(root, "enterprise-beans", {}), "message-driven", BEAN if path[1:2] != ("message-driven",) else {})
    grammar = grammar_of(schema)
    for place, name in enumerate(path[:-1]):
        found = parent.find(name) if schema == "ejb-jar" and place < 2 else None
        parent = add(parent, name, {}) if found is None else found
        if name == "message-driven" and schema == "ejb-jar":
            for key, value in BEAN.items():
                if key not in path:
                    add(parent, key, value)
        for key in KEYS.get(name, ()):
            if key in grammar[name] and key not in path[place + 1 : place + 2] and parent.find(key) is None:
                add(parent, key, {k: VALUES[k] for k in KEYS["method"]} if key == "method" else VALUES.get(key, key))
    if whole:
        add(parent, path[-1], VALUES.get(path[-1], path[-1]) if path[-1] not in grammar else {})
    return ET.tostring(root, "unicode")


def outcome(folder: Path, schema: str, text: str) -> tuple[str, set[ReportEntry]]:
    """Return what a descriptor, and an ejb-jar.xml with a bean, are read as, and the report."""
    files = {f"{schema}.xml": text, "ra.xml": ADAPTER}
    if schema != "ejb-jar":
        root = ET.Element("ejb-jar")
        add(add(root, "enterprise-beans", {}), "message-driven", BEAN)
        files["ejb-jar.xml"] = ET.tostring(root, "unicode")
    for name, content in files.items():
        (folder / name).write_text(content, "utf-8")
    try:
        found = read(*(folder / name for name in files))
    except ConfigurationError as error:
        return str(error), set()
    return str(found.configuration.model_dump()), set(found.report)


@pytest.mark.parametrize("schema", GRAMMARS)
def test_every_element_is_read_or_reported(tmp_path: Path, schema: str, capsys: pytest.CaptureFixture[str]) -> None:
    every = [path for path in paths(schema) if path != ("enterprise-beans", "message-driven")]  # without one, no beans
    is_whole = os.environ.get("JMSJCA_ALL_STEPS") or len(every) <= SAMPLE
    visited = every if is_whole else random.Random(SEED).sample(every, SAMPLE)
    with capsys.disabled():
        print(f"\n{schema}.xml: {len(visited)} / {len(every)} elements")
    silent = []
    for path in visited:
        without = outcome(tmp_path, schema, document(schema, path, whole=False))
        with_it = outcome(tmp_path, schema, document(schema, path, whole=True))
        names = {entry.name for entry in with_it[1]}
        is_told = with_it != without or names & {*path, *(key for name in path for key in KEYS.get(name, ()))}
        if not is_told:
            silent.append("/".join(path))
    assert silent == []
