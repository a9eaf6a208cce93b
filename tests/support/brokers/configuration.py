"""Writes a broker's configuration from the templates in ``conf``."""

import string
from pathlib import Path

from brokers.ports import HOST

CONF = Path(__file__).with_name("conf")


def write_configuration(broker):
    """Fill ``$host``, ``$folder`` and ``$amqp`` (a port), ``$stomp`` … into every template of the broker."""
    values = {"host": HOST, "folder": str(broker.folder), **_port_names(broker.ports)}
    target = broker.folder / "conf"
    target.mkdir(parents=True, exist_ok=True)
    for template in (CONF / broker.name).iterdir():
        (target / template.name).write_text(string.Template(template.read_text()).substitute(values))


def _port_names(ports):
    return {protocol.replace("-", "_"): str(port) for protocol, port in ports.items()}
