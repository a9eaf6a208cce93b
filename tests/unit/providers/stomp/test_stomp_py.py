"""What is used of stomp.py is there and does what it is used for: a release that changes it is named in one line."""

import ast
import inspect
import logging
import tomllib
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

import jmsjca
from jmsjca.providers.stomp.protocol import stomp_py
from jmsjca.providers.stomp.protocol.frames import Frame
from jmsjca.providers.stomp.protocol.stomp_py import (
    BaseTransport,
    ConnectionListener,
    Protocol11,
    Protocol12,
    StompFrame,
    calculate_heartbeats,
    convert_frame,
    pack,
)

# Each attribute that is used, with the parameters that it is called with or that call ours.
USED = {
    "stomp.listener.ConnectionListener.on_connected": ["self", "frame"],
    "stomp.listener.ConnectionListener.on_receipt": ["self", "frame"],
    "stomp.listener.ConnectionListener.on_error": ["self", "frame"],
    "stomp.listener.ConnectionListener.on_disconnected": ["self"],
    "stomp.listener.ConnectionListener.on_send": ["self", "frame"],
    "stomp.protocol.Protocol11": ["transport"],
    "stomp.protocol.Protocol11.send_frame": ["self", "cmd", "headers"],
    "stomp.protocol.Protocol12": ["transport"],
    "stomp.protocol.Protocol12.send_frame": ["self", "cmd", "headers"],
    "stomp.transport.BaseTransport": ["auto_decode"],
    "stomp.transport.BaseTransport.start": ["self"],
    "stomp.transport.BaseTransport.send": ["self", "encoded_frame"],
    "stomp.transport.BaseTransport.set_listener": ["self", "name", "listener"],
    "stomp.transport.BaseTransport.notify": ["self", "frame_type", "frame"],
    "stomp.transport.BaseTransport.transmit": ["self", "frame"],
    "stomp.utils.Frame": ["cmd", "headers"],
    "stomp.utils.calculate_heartbeats": ["shb", "chb"],
    "stomp.utils.convert_frame": ["frame"],
    "stomp.utils.pack": ["pieces"],
}


@pytest.mark.parametrize("name", USED)
def test_it_is_there(name):
    found, rest = _found(name)
    for part in rest:
        assert hasattr(found, part), f"stomp.py {version('stomp.py')} has no {name}, which jmsjca uses"
        found = getattr(found, part)
    parameters = list(inspect.signature(found).parameters)
    assert parameters[: len(USED[name])] == USED[name], f"{name} of stomp.py {version('stomp.py')} takes {parameters}"


def _found(name):
    """The module of a name, and the parts of the name in it."""
    first, second, *rest = name.split(".")
    return import_module(f"{first}.{second}"), rest


def test_nothing_else_is_imported():
    """And by one module only."""
    root = Path(jmsjca.__file__).parent
    imported = {}
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "stomp":
                imported.setdefault(path, []).extend(f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Import):
                assert not [alias for alias in node.names if alias.name.partition(".")[0] == "stomp"]
    assert list(imported) == [Path(stomp_py.__file__)]
    assert {".".join(name.split(".")[:3]) for name in USED} == set(imported[Path(stomp_py.__file__)])


def test_installed_release_is_one_that_is_allowed():
    project = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["optional-dependencies"]["stomp"] == ["stomp.py>=9,<10"]
    assert version("stomp.py").partition(".")[0] == "9"


def test_the_attributes_of_a_transport_that_are_used():
    transport = BaseTransport(auto_decode=False)
    assert (transport.running, transport.io_thread, transport.blocking) == (False, None, True)


class Sent(BaseTransport):
    def __init__(self):
        super().__init__(auto_decode=False)
        self.written = []

    def send(self, encoded_frame):
        self.written.append(encoded_frame)


@pytest.mark.parametrize(("protocol", "escaped"), [(Protocol11, b"a\\cb\\n\\\\"), (Protocol12, b"a\\cb\\n\\\\\\r")])
def test_frame_is_written_at_once_and_escaped_by_version(protocol, escaped):
    transport = Sent()
    value = "a:b\n\\" + ("\r" if protocol is Protocol12 else "")
    protocol(transport).send_frame("SUBSCRIBE", {"id": value})
    assert transport.written == [b"SUBSCRIBE\nid:%b\n\n\0" % escaped]


def test_frame_that_is_encoded_is_not_escaped():
    assert pack(convert_frame(StompFrame("CONNECT", {"login": "a:b"}))) == b"CONNECT\nlogin:a:b\n\n\0"


def test_protocol_class_starts_no_thread_for_heartbeats_of_its_own():
    transport = Sent()
    protocol = Protocol12(transport)
    transport.notify("connected", Frame("CONNECTED", {"heart-beat": "1,1"}, b"", 1))
    assert protocol.heartbeat_thread is None


def test_listener_is_told_of_each_frame_with_our_frame():
    """And an error in it reaches the receiver thread, which ends the connection."""
    told = []

    class Listener(ConnectionListener):
        def on_receipt(self, frame):
            told.append(frame)

        def on_disconnected(self):
            raise ValueError

    transport = Sent()
    transport.set_listener("l", Listener())
    frame = Frame("RECEIPT", {"receipt-id": "1"}, b"", 10)
    transport.notify(frame.cmd.lower(), frame)
    assert told == [frame]
    with pytest.raises(ValueError, match=r"^$"):
        transport.notify("disconnected")


def test_heartbeats_are_the_larger_of_both():
    assert calculate_heartbeats(("500", "2000"), (1000, 1000)) == (2000, 1000)
    assert calculate_heartbeats(("0", "2000"), (0, 0)) == (0, 0)


def test_why_the_password_goes_round_its_writer(caplog):
    """Once this fails, `transmit` may write CONNECT too."""
    caplog.set_level(logging.DEBUG, "stomp.py")
    Protocol12(Sent()).send_frame("CONNECT", {"passcode": "hush"})
    assert "hush" in caplog.text
