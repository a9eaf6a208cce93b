"""The bridge to Java's clients: it ends with its process, and what it does not understand ends it."""

import os
import signal
import struct
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca.errors import ConnectionLostError, MessageFormatError, ProviderNotInstalledError
from jmsjca.providers.java import bridge, codec
from jmsjca.providers.java.bridge import Bridge, FrameReader, shared_bridge

PATIENCE = 60
KILLS = 100
FUZZ = Path(__file__).parents[3] / "java" / "bridge" / "Fuzz.java"
START = """
import sys, time
from jmsjca.providers.java.bridge import shared_bridge
print(shared_bridge()._process.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def running():
    """Return the bridge of this process."""
    try:
        return shared_bridge()
    except ProviderNotInstalledError as missing:
        pytest.skip(str(missing))


@pytest.fixture
def own_bridge(running):
    """Return a bridge for one test."""
    made = Bridge(bridge._find_java(), bridge._find_jar())
    yield made
    made.kill()


def gone(pid):
    """Wait for the end of a process; return whether it came."""
    try:
        psutil.Process(pid).wait(PATIENCE)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return False
    return True


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kills", [2, pytest.param(KILLS, marks=pytest.mark.torture)])
def test_no_bridge_outlives_a_killed_process(running, kills):
    for _ in range(kills):
        with subprocess.Popen([sys.executable, "-c", START], stdout=subprocess.PIPE, text=True) as owner:
            pid = int(owner.stdout.readline())
            assert psutil.pid_exists(pid)
            owner.send_signal(signal.SIGKILL)
        assert gone(pid)


def test_no_bridge_outlives_a_process_with_a_forked_child(running):
    """The child inherits the pipes, and closes them."""
    forked = START.replace("time.sleep", "import os; child = os.fork(); child and print(child, flush=True); time.sleep")
    with subprocess.Popen([sys.executable, "-c", forked], stdout=subprocess.PIPE, text=True) as owner:
        pid, child = (int(owner.stdout.readline()) for _ in range(2))
        owner.send_signal(signal.SIGKILL)
        try:
            assert gone(pid)
        finally:
            os.kill(child, signal.SIGKILL)


def test_killed_bridge_is_told_once_and_another_one_starts(running):
    told = []
    first = shared_bridge()
    channel = first.channel(told.append)
    waiting = channel.start(1)  # a malformed request; its reply does not matter
    first.kill()
    with pytest.raises((ConnectionLostError, bridge.BridgeReplyError)):
        waiting.result(PATIENCE)
    deadline = time.monotonic() + PATIENCE
    while not told and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [type(error) for error in told] == [ConnectionLostError]
    with pytest.raises(ConnectionLostError):
        channel.start(1)
    assert shared_bridge()._process.pid != first._process.pid


@pytest.mark.parametrize("size", [0, 8, (1 << 30) + 1, (1 << 32) - 1])
def test_wrong_length_of_a_request_ends_the_bridge(own_bridge, size):
    own_bridge._input.write(struct.pack(">I", size) + b"x" * 20)
    own_bridge._input.flush()
    assert own_bridge._process.wait(PATIENCE) == 64


def test_password_is_neither_in_arguments_nor_environment_nor_log(running, own_bridge):
    own_bridge.channel(lambda _: None, "s3cret")
    process = psutil.Process(own_bridge._process.pid)
    assert "s3cret" not in " ".join(process.cmdline()) + str(process.environ())
    assert "s3cret" not in repr(own_bridge)


def test_missing_java_is_told(monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ProviderNotInstalledError, match="Java 17 or later"):
        bridge._find_java()


def test_missing_jar_is_told(monkeypatch, tmp_path):
    """As in an installation that was built without a JDK."""
    monkeypatch.setenv("JMSJCA_CACHE", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ProviderNotInstalledError, match="built without a JDK"):
        bridge._find_jar()


@given(st.binary(max_size=300))
def test_any_frame_is_read_or_refused(data):
    """By its lengths: nothing is allocated for what is not there."""
    for read in (FrameReader.text, FrameReader.bytes, FrameReader.count, codec.read_value, codec.read_destination):
        with suppress(ValueError, IndexError, struct.error):
            read(FrameReader(data))


@given(st.binary(max_size=300))
def test_any_message_is_decoded_or_refused(data):
    """A message that cannot be decoded is poison; it must not end the consumer."""
    with suppress(MessageFormatError):
        message = codec.decode(data, None, count=1, redelivered=False)
        _ = message.properties, message.message_id, message.destination


def test_java_reads_any_frame_or_refuses_it(running):
    """With a heap that one wrong length would fill."""
    command = [bridge._find_java(), "-Xmx64m", "-cp", bridge._find_jar(), FUZZ, "20", "200000"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "200000 frames" in ran.stdout
