"""Remembers in a broker's folder which process and ports are its, so that another process can find it."""

import json
import os

import psutil

FILE = "state.json"


def remember(folder, ports, process):
    """Write down the ports and the process."""
    told = {"ports": ports, "pid": process.pid, "born": process.create_time()}
    draft = folder / f".{FILE}"
    draft.write_text(json.dumps(told))
    os.replace(draft, folder / FILE)  # noqa: PTH105  # replaces at once or not at all


def recall(folder):
    """Return the ports and the process that was started last, as far as they are known."""
    file = folder / FILE
    if not file.exists():
        return {}, None
    told = json.loads(file.read_text())
    return told["ports"], _find(told)


def is_alive(process):
    """Say whether a process runs; one that has ended and only waits for its parent does not."""
    try:
        return process is not None and process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _find(told):
    try:
        process = psutil.Process(told["pid"])
        return process if process.create_time() == told["born"] else None  # its number may be another's by now
    except psutil.NoSuchProcess:
        return None
