"""Writes docs/reference/api from the docstrings and the data of the code: ``python -m tests.support.reference``.

The pages name each public object; the site fills them with its docstring. Settings and commands are tables. The
argument ``check`` looks in the built site for each public name, for dead links, and for pictures of other sites.
"""

import inspect
import json
import re
import sys
from dataclasses import MISSING, fields
from importlib import import_module
from pathlib import Path

import typer

from jmsjca.config.configuration_file import (
    AdapterSection,
    Configuration,
    DestinationSection,
    FactorySection,
    ListenerSection,
)
from jmsjca.config.limits import Limits
from jmsjca.config.options import _NAMES, InboundOptions, OutboundOptions
from jmsjca.management.commands import app
from jmsjca.providers.amqp.provider import AMQPOptions
from jmsjca.providers.common.network import NetworkOptions
from jmsjca.providers.stomp.provider import STOMPOptions

FOLDER = Path(__file__).parents[2] / "docs" / "reference" / "api"
MODULES = (
    *("jmsjca", "jmsjca.errors", "jmsjca.messages", "jmsjca.messages.converters", "jmsjca.outbound", "jmsjca.aio"),
    *("jmsjca.inbound", "jmsjca.hooks", "jmsjca.redelivery", "jmsjca.selectors", "jmsjca.config"),
    *("jmsjca.transactions", "jmsjca.descriptors", "jmsjca.spark"),
    *(
        "jmsjca.connector",
        "jmsjca.connector.data_handlers",
        "jmsjca.connector.definitions",
        "jmsjca.connector.sql_event_store",
        "jmsjca.connector.relationships",
    ),
    *(
        "jmsjca.management.insight",
        "jmsjca.management.health",
        "jmsjca.management.metrics",
        "jmsjca.management.tracing",
        "jmsjca.management.asyncapi",
        "jmsjca.management.beans",
        "jmsjca.management.console",
    ),
    *("jmsjca.testing.recorder", "jmsjca.testing.call_recorder", "jmsjca.testing.faults", "jmsjca.testing.idle"),
    *("jmsjca.testing.time_travel", "jmsjca.testing.pytest_plugin"),
    *("jmsjca.testing.contract", "jmsjca.testing.inbound"),
    *("jmsjca.spi", "jmsjca.providers"),
    *("jmsjca.providers.embedded.admin", "jmsjca.providers.embedded.maintenance"),
)
HEAD = "<!-- Written by python -m tests.support.reference. Do not edit. -->\n"


def public_names(module):
    """Return the public names of a module, without those that the package itself has."""
    names = [name for name in import_module(module).__all__ if not name.startswith("__")]
    first = set(import_module("jmsjca").__all__) if module != "jmsjca" else set()
    return [name for name in names if name not in first]


def pages():
    """Return the text of each page by its name."""
    return {
        "index": index(),
        "settings": settings(),
        "configuration": configuration(),
        "commands": commands(),
        **{module: page(module) for module in MODULES},
    }


def page(module):
    parts = [f"{HEAD}# {module}\n", f"{summary(import_module(module))}\n"]
    parts += [f"::: {module}.{name}\n" for name in public_names(module)]
    return "\n".join(parts)


def index():
    rows = [["module", "public names"], ["---", "---"]]
    rows += [
        [f"[{module}]({module}.md)", ", ".join(f"`{name}`" for name in public_names(module))] for module in MODULES
    ]
    text = (
        "Use these pages to look up a name, an argument or an error. They are generated from the code. For example,\n"
        "the arguments of a listener are the fields of `ActivationSpec` in [jmsjca](jmsjca.md). The options of URLs,\n"
        "of connections and of JMSJCA are in [Settings](settings.md), the sections of `jmsjca.toml` in\n"
        "[Configuration files](configuration.md), the command line is in [Commands](commands.md), and the\n"
        "capabilities of brokers are in [What each broker can do](../capabilities.md). The tests compare the tables\n"
        "of [log events](../../how-to/logging.md#events-of-listeners) and of [metrics](../../how-to/metrics.md)\n"
        "with the code. Exit statuses are in [Command line](../command-line.md#exit-status).\n"
    )
    return f"{HEAD}# Reference\n\n{text}\n{table(rows)}"


def settings():
    parts = [f"{HEAD}# Settings\n\nUse this page to look up an option. The tables are generated from the code.\n"]
    network = {field.name for field in fields(NetworkOptions)}
    for title, kind, chosen in (
        ("Options of `amqp://`, `amqps://`, `stomp://` and `stomp+ssl://` URLs", NetworkOptions, network),
        ("Options of `amqp://` and `amqps://` URLs only", AMQPOptions, None),
        ("Options of `stomp://` and `stomp+ssl://` URLs only", STOMPOptions, None),
        ("`Limits` of a connection", Limits, None),
        ("Options of JMSJCA for listeners, as `activation.spec.inbound_options` has them", InboundOptions, None),
        ("Options of JMSJCA for connection factories", OutboundOptions, None),
    ):
        own = [each for each in fields(kind) if chosen is not None or each.name not in network]
        parts.append(f"## {title}\n\n{table(settings_rows(kind, own))}")
    names = table([["option"], ["---"], *[[f"`{name}`"] for name in _NAMES]])
    parts.append(
        "## Names of JMSJCA's options\n\n[Activation specs and options](../activation-spec.md#options) has their\n"
        "meaning. "
        f"`embedded://` URLs have no other options.\n\n{names}"
    )
    return "\n".join(parts)


def configuration():
    text = (
        "Use this page to look up a field of `jmsjca.toml`. The tables are generated from the JSON schema, which is\n"
        "`jmsjca.config.configuration_file.Configuration.model_json_schema()`.\n"
        "[Configuration](../configuration.md) has an example. The fields of `[connectors.NAME]` are those of\n"
        "`ConnectorConfig` in [jmsjca.connector](jmsjca.connector.md).\n"
    )
    parts = [f"{HEAD}# Configuration files\n\n{text}"]
    for title, kind in (
        ("[adapters.NAME]", AdapterSection),
        ("[listeners.NAME]", ListenerSection),
        ("[factories.NAME]", FactorySection),
        ("[destinations.NAME]", DestinationSection),
    ):
        parts.append(f"## `{title}`\n\n{table(configuration_rows(kind))}")
    return "\n".join(parts)


def configuration_rows(kind):
    definitions = Configuration.model_json_schema()["$defs"]
    described = descriptions(kind)
    yield from (["field", "type", "default", "meaning"], ["---"] * 4)
    for name, schema in definitions[kind.__name__]["properties"].items():
        default = schema.get("default")
        shown = "" if default is None or default == {} else f"`{json.dumps(default)}`"
        yield [f"`{name}`", ", ".join(types(schema, definitions)), shown, described[name].replace("|", "\\|")]


def types(schema, definitions):
    """Return the types of a JSON schema, and the values of an enumeration, without null."""
    if "$ref" in schema:
        return types(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "enum" in schema or "const" in schema:
        return [f"`{json.dumps(value)}`" for value in schema.get("enum", [schema.get("const")])]
    several = [name for each in schema.get("anyOf", ()) for name in types(each, definitions)]
    alone = {"object": "table"}.get(schema.get("type"), schema.get("type", "any"))
    return list(dict.fromkeys(several)) or ([] if alone == "null" else [alone])


def settings_rows(kind, own):
    described = descriptions(kind)
    yield from (["name", "default", "meaning"], ["---"] * 3)
    for field in own:
        default = "" if field.default is MISSING or field.default is None else f"`{field.default}`"
        yield [f"`{field.name}`", default, described[field.name]]


def descriptions(kind):
    """Return what the docstrings of a class say of each argument or attribute."""
    if hasattr(kind, "model_fields"):
        texts = {name: field.description for name, field in kind.model_fields.items()}
        return {name: " ".join(text.split()).replace("``", "`") for name, text in texts.items()}
    text = inspect.cleandoc(kind.__doc__)
    section = re.split(r"^(?:Args|Attributes):\n", text, flags=re.MULTILINE)[1].split("\n\n")[0]
    found = re.findall(r"^    (\w+): (.*?)(?=^    \w|\Z)", section, flags=re.MULTILINE | re.DOTALL)
    return {name: " ".join(words.split()).replace("``", "`") for name, words in found}


def commands():
    use = "Use this page to look up a command and its options. [Command line](../command-line.md) has examples."
    parts = [f"{HEAD}# Commands\n\n{use}\n"]
    for path, command in walk(typer.main.get_command(app), ("jmsjca",)):
        parts.append(f"## {' '.join(path)}\n\n{' '.join((command.help or '').split())}\n\n{table(parameters(command))}")
    return "\n".join(parts)


def walk(command, path):
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, each in sorted(command.commands.items()):
        yield from walk(each, (*path, name))


def parameters(command):
    yield from (["parameter", "meaning"], ["---"] * 2)
    for each in command.params:
        shown = (
            ", ".join(f"`{option}`" for option in each.opts)
            if each.param_type_name == "option"
            else f"`{each.name.upper()}`"
        )
        yield [shown, " ".join((getattr(each, "help", None) or "").split()).replace("|", "\\|")]


def summary(module):
    return (inspect.getdoc(module) or "").split("\n\n")[0].replace("``", "`").replace("\n", " ")


def table(rows):
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def write(folder):
    """Write all pages into a folder, and remove others."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.md"):
        old.unlink()
    for name, text in pages().items():
        (folder / f"{name}.md").write_text(text)


def missing_in(site):
    """Return the public names that a built site has no section for."""
    found = {
        module: (site / "reference" / "api" / module / "index.html").read_text()
        if (site / "reference" / "api" / module).exists()
        else ""
        for module in MODULES
    }
    return [f"{m}.{name}" for m in MODULES for name in public_names(m) if f'id="{m}.{name}"' not in found[m]]


def foreign_pictures_in(site):
    """Return the pictures of other sites that a built site shows, such as those of ``:link:`` in a text."""
    found = {
        path: re.findall(r"<img[^>]* src=[\"']?(https?:[^\"'\s>]+)", path.read_text()) for path in site.rglob("*.html")
    }
    return sorted(f"{path.relative_to(site)}: {picture}" for path, pictures in found.items() for picture in pictures)


def dead_links_in(site):
    """Return the links of a built site that lead to no file of it, or to no section of a page."""
    texts = {path: path.read_text() for path in site.rglob("*.html")}
    found = []
    for path, text in texts.items():
        for link in set(re.findall(r"(?:href|src)=[\"']?([^\"'\s>]+)", text)):
            if re.match(r"[a-z]+:|//", link):
                continue  # of another site, or data
            place, _, section = link.partition("#")
            file = (site / place.lstrip("/") if place.startswith("/") else path.parent / place).resolve()
            file = path if not place else file / "index.html" if file.is_dir() else file
            has_section = not section or re.search(rf"id=[\"']?{re.escape(section)}[\"'\s>]", texts.get(file, ""))
            if not file.exists() or (file in texts and not has_section):
                found.append(f"{path.relative_to(site)}: {link}")
    return sorted(found)


if __name__ == "__main__":
    if sys.argv[1:] == ["check"]:
        site = (FOLDER.parents[1] / ".site").resolve()
        sys.exit("\n".join(missing_in(site) + dead_links_in(site) + foreign_pictures_in(site)) or 0)
    write(FOLDER)
