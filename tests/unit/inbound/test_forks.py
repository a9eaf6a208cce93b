"""Handlers that fork: a child that comes back from its handler ends, with one record, and takes no message."""

import pytest

from tests.unit.providers.embedded.processes import PATIENCE, heard, process

_FORKING = """
import asyncio, logging
from collections.abc import Sequence
from jmsjca import Message, ResourceAdapter
logging.basicConfig(format="%(process)d %(levelname)s %(message)s", level="INFO", stream=sys.stdout)
adapter, parent, calls, done = ResourceAdapter(url), os.getpid(), [], threading.Event()
def work(message):
    calls.append(message)
    if len(calls) > 1:
        tell("parent" if os.getpid() == parent else "child", message.body)
        done.set()
        return
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        {end}
        return
    tell("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
def single(message): work(message)
def held(message):
    work(message)
    message.acknowledge()
def batch(messages: Sequence[Message]): work(messages[0])
async def coroutine(message): work(message)
async def waiting(message):
    await asyncio.sleep(0)
    work(message)
adapter.listener("q", **{options})({function})
with adapter:
    send("q", "a")
    send("q", "b")
    done.wait(60)
tell("over")
"""
MODES = {
    "serial": ("single", {}),
    "sync": ("single", {"concurrency_mode": "sync", "endpoint_pool_max_size": 1}),
    "cc": ("single", {"concurrency_mode": "cc", "endpoint_pool_max_size": 1}),
    "held": ("held", {"concurrency_mode": "cc", "endpoint_pool_max_size": 1, "hold_until_ack": True}),
    "batch": ("batch", {"batch_size": 1}),
    "async": ("coroutine", {}),
    "async after a wait": ("waiting", {"concurrency_mode": "cc", "endpoint_pool_max_size": 1}),
}
ENDS = {"return": ("", 1), "error": ("raise ValueError('in the child')", 1), "exit": ("sys.exit(3)", 3)}


CASES = [
    *((mode, "return") for mode in MODES),
    ("serial", "error"),
    ("serial", "exit"),
    ("async", "error"),
    ("async", "exit"),
]


@pytest.mark.parametrize(("mode", "end"), CASES)
def test_child_that_comes_back_from_a_handler_ends(broker_file, mode, end):
    (function, options), (act, status) = MODES[mode], ENDS[end]
    script = _FORKING.format(function=function, options=options, end=act)
    with process(broker_file, script) as parent:
        lines = []
        while not lines or lines[-1] not in {"over", ""}:
            lines.append(heard(parent))
        assert parent.wait(PATIENCE) == 0
    told = [line for line in lines if not line.startswith(tuple("0123456789"))]
    records = [line for line in lines if line.startswith(tuple("0123456789")) and not line.startswith(f"{parent.pid} ")]
    assert f"ended {status}" in told
    assert next(line for line in told if line.startswith(("parent ", "child "))) == "parent b"
    assert not [line for line in told if line.startswith("child ")]
    assert len(records) == (end != "exit")
    assert all("ERROR The handler" in line and "came back from it: the child ends." in line for line in records)
