"""A program opens no port of its own accord: not by an import, nor by an adapter with all that observes it."""

import subprocess
import sys

PROGRAM = """
import pkgutil, sys
from importlib import import_module

bound = []
sys.addaudithook(lambda event, arguments: bound.append(arguments) if event == "socket.bind" else None)

import jmsjca
for module in pkgutil.walk_packages(jmsjca.__path__, "jmsjca."):
    if not module.name.startswith(("jmsjca.spark", "jmsjca.demo")) and not module.name.endswith("__main__"):
        import_module(module.name)

import threading
from prometheus_client import CollectorRegistry
from jmsjca import ActivationSpec, ResourceAdapter
from jmsjca.management.beans import MBeanServer
from jmsjca.management.console import Console
from jmsjca.management.health import HealthFile, app_for
from jmsjca.management.insight import Insight
from jmsjca.management.mcp_server import mcp_server
from jmsjca.management.metrics import Metrics
from jmsjca.management.tracing import Tracing

metrics, handled = Metrics(CollectorRegistry()), threading.Event()
adapter = ResourceAdapter("embedded://quiet", hooks=[metrics, Tracing()], mbean_object_name="adapter")
metrics.watch(adapter)
adapter.activate(ActivationSpec(destination="orders", mbean_name="orders"), lambda message: handled.set())
console, health, server = Console(adapter, writable=True), app_for(adapter), mcp_server(Insight(adapter))
with adapter, HealthFile(lambda: adapter.health().as_dict(), sys.argv[1]):
    adapter.start(wait=60)
    adapter.send("orders", "a pear")
    assert handled.wait(60)
    assert MBeanServer.default().lookup("orders").invoke("getStatus") == "Up"
assert bound == [], bound

import socket
socket.create_server(("127.0.0.1", 0)).close()
assert len(bound) == 1  # the hook sees ports
"""


def test_nothing_listens_unless_a_program_asks(tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(tmp_path / "health.json")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
