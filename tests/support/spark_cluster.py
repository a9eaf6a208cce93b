"""A Spark cluster on this machine: a master and two workers, on two loopback addresses, so that they are two hosts.

And a server of Spark Connect.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pyspark
from brokers.ports import free_ports
from spark_session import java_home

MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
HOSTS = ("127.0.0.1", "127.0.0.2")
START_SECONDS = 120


@contextmanager
def spark_cluster(folder: Path) -> Iterator[str]:
    """Start a cluster with one core on each host, and yield the URL of its master."""
    port, started = next(free_ports()), list[psutil.Popen]()
    url = f"spark://{HOSTS[0]}:{port}"
    try:
        started.append(_start(folder, "master", MASTER, "--host", HOSTS[0], "--port", str(port), "--webui-port", "0"))
        _await(folder / "master.log", "I have been elected leader", 1, started)
        for host in HOSTS:
            options = ["--host", host, "--cores", "1", "--memory", "1g", "--webui-port", "0"]
            started.append(_start(folder, host, WORKER, *options, "--work-dir", str(folder / host), url))
        _await(folder / "master.log", "Registering worker", len(HOSTS), started)
        yield url
    finally:
        _end(started)


@contextmanager
def connect_server(folder: Path, more: Mapping[str, str] | None = None) -> Iterator[str]:
    """Start a server of Spark Connect, which is a driver with executors in it, and yield its URL.

    Args:
        folder: Where it has its files and its log, ``connect.log``.
        more: Settings beside those of all tests.
    """
    port, started = next(free_ports()), list[psutil.Popen]()
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.driver.host": HOSTS[0],
        "spark.driver.bindAddress": HOSTS[0],
        "spark.connect.grpc.binding.address": HOSTS[0],
        "spark.connect.grpc.binding.port": str(port),
        **(more or {}),
    }
    given = [text for name, value in settings.items() for text in ("--conf", f"{name}={value}")]
    try:
        started.append(_start(folder, "connect", "org.apache.spark.deploy.SparkSubmit", *given, "--class", CONNECT))
        _await(folder / "connect.log", "Spark Connect server started", 1, started)
        yield f"sc://{HOSTS[0]}:{port}"
    finally:
        _end(started)


def _end(started: list[psutil.Popen]) -> None:
    for process in started:
        with suppress(psutil.NoSuchProcess):
            for each in (*process.children(recursive=True), process):
                with suppress(psutil.NoSuchProcess):
                    each.kill()
        process.wait()


def _start(folder: Path, name: str, kind: str, *options: str) -> psutil.Popen:
    home = Path(pyspark.__file__).parent
    environment = os.environ | {
        "SPARK_HOME": str(home),
        "JAVA_HOME": java_home(),
        "SPARK_DAEMON_MEMORY": "1g" if name == "connect" else "256m",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.environ.get("PYTHONPATH", "") if name == "connect" else "",  # executors have that of their job
        "SPARK_LOCAL_DIRS": str(folder),
    }
    with (folder / f"{name}.log").open("wb") as log:
        return psutil.Popen(
            [home / "bin" / "spark-class", kind, *options],
            env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip


def _await(log: Path, line: str, times: int, started: list[psutil.Popen]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while log.read_text(errors="replace").count(line) < times:
        if time.monotonic() > deadline or any(process.poll() is not None for process in started):
            raise RuntimeError(f"Spark did not start; it said:\n{log.read_text(errors='replace')}")
        time.sleep(0.1)
