"""Signals, interpreter exit and forks, each in a separate process."""

import signal
import subprocess
import sys
import threading

import pytest

from jmsjca import ResourceAdapter
from jmsjca.inbound.dispatcher import DaemonThreadPool
from tests.unit.inbound.listeners import PATIENCE, send, waiting

_BEGIN = """
import os, signal, sys, threading
from jmsjca import Hooks, ResourceAdapter
signal.alarm(60)  # hangs are failures
url, mode = sys.argv[1:3]
def tell(*words): os.write(1, (" ".join(map(str, words)) + "\\n").encode())  # one write: lines of threads do not mix
working, ending = threading.Event(), threading.Event()

class Tell(Hooks):
    def status_changed(self, endpoint, status):
        if os.getpid() == parent:
            tell(status)
        if status == "Disconnecting":
            ending.set()

parent = os.getpid()
adapter = ResourceAdapter(url, hooks=[Tell()])

def blocked(message):
    tell("working")
    working.set()
    threading.Event().wait()
"""


@pytest.fixture
def url(tmp_path):
    return f"embedded://{tmp_path}/broker.db"


def started(script, url, mode="serial"):
    command = [sys.executable, "-c", _BEGIN + script, url, mode]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def heard_until(process, word):
    while (line := process.stdout.readline()) and line.strip() != word:
        pass
    assert line, process.stderr.read()


def said_by(process):
    """What it still says until it ends; `communicate` passes over what was read together with a line before."""
    said = process.stdout.read()
    assert process.wait(PATIENCE) == 0
    return said.split()


def ended(process):
    """What it still says; it ends by itself, without a word of complaint."""
    said = said_by(process)
    assert process.stderr.read() == ""
    return said


MODES = pytest.mark.parametrize("mode", ["serial", "sync", "cc"])

_SERVE = """
import logging
logging.disable()
adapter.listener("q", concurrency_mode=mode)(blocked)
tell(bool(adapter.run({})))
"""


@MODES
def test_a_second_signal_ends_what_the_first_one_waits_for(url, mode):
    send(ResourceAdapter(url), "a")
    with started(_SERVE.format(""), url, mode) as process:
        heard_until(process, "working")
        process.send_signal(signal.SIGTERM)
        heard_until(process, "Disconnecting")
        process.send_signal(signal.SIGINT)
        assert ended(process) == ["Down", "False"]
    assert waiting(ResourceAdapter(url)) == [("a", 1)]


def test_a_deadline_ends_it_without_a_second_signal(url):
    send(ResourceAdapter(url), "a")
    with started(_SERVE.format("timeout=0"), url) as process:
        heard_until(process, "working")
        process.send_signal(signal.SIGTERM)
        assert ended(process) == ["Disconnecting", "Down", "False"]


_FORGET = """
@adapter.listener("q", concurrency_mode=mode, redelivery_handling="3:move(queue:dlq.$)")
{how} handler(message):
    working.set()
    assert ending.wait(30)
    tell("done")

adapter.start()
assert working.wait(30)
"""


@MODES
@pytest.mark.parametrize("how", ["def", "async def"])
def test_a_program_that_forgot_its_adapter_ends_and_finishes_the_message_in_hand(url, mode, how):
    send(ResourceAdapter(url), "a")
    with started(_FORGET.format(how=how), url, mode) as process:
        assert ended(process) == ["Connecting", "Up", "Disconnecting", "done", "Down"]
    assert waiting(ResourceAdapter(url)) == []


@MODES
def test_what_it_does_not_finish_in_time_comes_again(url, mode):
    send(ResourceAdapter(url), "a")
    script = """
import logging
from jmsjca.inbound import shutdown as process
process._GRACE = 0
logging.disable()
adapter.listener("q", concurrency_mode=mode)(blocked)
adapter.start()
assert working.wait(30)
"""
    with started(script, url, mode) as process:
        ended(process)
    assert waiting(ResourceAdapter(url)) == [("a", 1)]


@MODES
def test_it_ends_although_there_is_always_another_message(url, mode):
    send(ResourceAdapter(url), "a", "b")
    script = """
@adapter.listener("q", concurrency_mode=mode, redelivery_handling="3:move(queue:dlq.$)")
def again(message, session):
    working.set()
    session.create_producer(message.destination).send(session.create_text_message(message.body))

adapter.start()
assert working.wait(30)
"""
    with started(script, url, mode) as process:
        assert ended(process)[-1] == "Down"
    assert sorted(body for body, _ in waiting(ResourceAdapter(url))) == ["a", "b"]


@MODES
def test_a_forked_child_leaves_its_parents_endpoints_alone(url, mode):
    send(ResourceAdapter(url), "a")
    script = """
adapter.listener("q", concurrency_mode=mode, endpoint_pool_max_size=1)(blocked)
activation = adapter.activations[0]
adapter.start()
assert working.wait(30)
child = os.fork()
if not child:
    signal.alarm(60)
    assert (activation.status, threading.active_count()) == ("Down", 1)
    assert activation.stats.n_messages == 0
    assert adapter.stop()
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
tell(activation.status, activation.stats.n_active_endpoints)
adapter.stop(timeout=0)
"""
    with started(script, url, mode) as process:
        heard_until(process, "working")
        assert said_by(process) == ["Up", "1", "Disconnecting", "Down"]
    assert waiting(ResourceAdapter(url)) == [("a", 1)]


def test_workers_are_as_many_as_are_needed_and_used_again():
    workers = DaemonThreadPool(2, "some")
    together = threading.Barrier(2)

    def name() -> str:
        together.wait(PATIENCE)
        return threading.current_thread().name

    pair = [workers.submit(name) for _ in range(2)]
    names = {future.result(PATIENCE) for future in pair}
    assert names == {"some #0", "some #1"}
    assert {workers.submit(lambda: threading.current_thread().name).result(PATIENCE) for _ in range(20)} <= names
    workers.shutdown()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("some")]
    with pytest.raises(RuntimeError, match="shut down"):
        workers.submit(int)


def test_idle_workers_are_used_again():
    workers = DaemonThreadPool(50, "idle")
    for _ in range(50):
        workers.submit(int).result(PATIENCE)
        while not workers._idle:  # the thread tells its result first, and is idle then
            threading.Event().wait(0.001)
    assert len([thread for thread in threading.enumerate() if thread.name.startswith("idle")]) == 1
    workers.shutdown()


def test_workers_hand_on_what_is_raised_and_skip_what_is_cancelled():
    workers = DaemonThreadPool(1, "some")
    go_on, ran = threading.Event(), []
    first = workers.submit(lambda: go_on.wait(PATIENCE) and int("x"))
    second = workers.submit(ran.append, 1)
    assert second.cancel()
    go_on.set()
    with pytest.raises(ValueError, match="invalid literal"):
        first.result(PATIENCE)
    workers.shutdown()
    assert ran == []


def test_one_of_the_workers_may_shut_them_down():
    workers = DaemonThreadPool(1, "some")
    assert workers.submit(workers.shutdown).result(PATIENCE) is None
