"""The command ``jmsjca check``: what is wrong with a listener is found before anything is connected."""

import json
import socket

import pytest

from jmsjca.__main__ import run
from jmsjca.errors import ConfigurationError
from jmsjca.management.worker import load_adapter

ADAPTER = """
from jmsjca import ActivationSpec, ResourceAdapter, Topic
adapter = ResourceAdapter({url!r})

def on_order(message):
    pass

adapter.activate(ActivationSpec(destination="good"), on_order)
adapter.activate(ActivationSpec({fields}), on_order)
"""
SHARED = """destination=Topic("news"), subscription_durability="Durable", client_id="c",
    subscription_name="jmsjca://?distribution=1&subscribername=s", """


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """Check an adapter; return the exit status and the rows."""
    monkeypatch.chdir(tmp_path)
    opened = []
    monkeypatch.setattr(socket.socket, "connect", lambda self, address: opened.append(address))

    def _check(content, target="checked_shop.toml"):
        (tmp_path / target).write_text(content)
        status = run(["check", target.replace(".py", ":adapter"), "--json"])
        written = capsys.readouterr()
        assert opened == []
        assert written.err == ""
        return status, json.loads(written.out)

    return _check


@pytest.fixture
def check_module(check, monkeypatch):
    import sys

    monkeypatch.delitem(sys.modules, "checked_shop", raising=False)
    yield lambda url, fields: check(ADAPTER.format(url=url, fields=fields), "checked_shop.py")
    sys.modules.pop("checked_shop", None)


@pytest.mark.parametrize("url", ["embedded://x", "amqp://a,b?heartbeat=10&JMSJCA.concurrencymode=cc", "stomp://a/v"])
def test_an_adapter_without_a_problem(check_module, url):
    status, rows = check_module(url, 'destination="orders", selector="shop = \'Bern\'"')
    assert status == 0
    assert [(row["handler"], row["problem"]) for row in rows] == [("on_order", None)] * 2
    assert "(orders)" in rows[1]["listener"]


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("embeded://x", "No provider for the scheme embeded:// (did you mean embedded://?)"),
        ("amqp://a?heartbet=10", "heartbet"),
        ("amqp://a?heartbeat=soon", "heartbeat"),
        ("amqp://a/path", "the URL of a broker over AMQP has none"),
        ("stomp://a?java_map=true", "java_map"),
        ("embedded://x?module=os", "An embedded broker has no options"),
    ],
)
def test_a_wrong_url_is_a_problem(check_module, url, problem):
    status, rows = check_module("embedded://x", f'destination="orders", connection_url={url!r}')
    assert (status, rows[0]["problem"]) == (2, None)
    assert problem in rows[1]["problem"]


@pytest.mark.parametrize("fields", ['destination="orders", ', SHARED], ids=["queue", "distributed"])
def test_a_wrong_selector_is_a_problem(check_module, fields):
    status, rows = check_module("stomp://a", f'{fields} selector="price > "')
    assert (status, rows[0]["problem"]) == (2, None)
    assert "The selector is wrong at position 9" in rows[1]["problem"]


def test_a_configuration_file_is_checked_in_the_same_way(check):
    section = 'destination = "orders"\nadapter = "shop"\nhandler = "os.path:basename"\nselector = "a b"'
    status, [row] = check(f'[adapters.shop]\nconnection_url = "embedded://x"\n[listeners.orders]\n{section}\n')
    assert status == 2
    assert "The selector is wrong" in row["problem"]


SEVERAL = """
[adapters.default]
connection_url = "embedded://x"
[adapters.archive]
connection_url = "embedded://y"
[listeners.orders]
destination = "orders"
handler = "os.path:basename"
[listeners.old]
adapter = "archive"
destination = "old"
handler = "os.path:basename"
selector = "a b"
"""


def test_the_listeners_of_all_adapters_of_a_file_are_checked(check):
    status, rows = check(SEVERAL)
    assert (status, [row["problem"] is None for row in rows]) == (2, [True, False])
    assert "(old)" in rows[1]["listener"]


def test_a_worker_serves_the_adapter_of_a_file_that_is_named(tmp_path, caplog):
    file = tmp_path / "shop.toml"
    file.write_text(SEVERAL)
    [listener] = load_adapter(f"{file}:archive").activations
    assert (listener.spec.destination, caplog.messages) == ("old", [])
    [listener] = load_adapter(f"{file}").activations
    assert listener.spec.destination == "orders"
    [text] = caplog.messages
    assert f"{file} has listeners of other adapters" in text
    assert "archive" in text
    with pytest.raises(ConfigurationError, match="no adapter 'none'"):
        load_adapter(f"{file}:none")
