"""URLs that other clients have been attacked with: an unknown scheme or option is an error, and nothing is opened."""

import socket

import pytest

from jmsjca.errors import ConfigurationError
from jmsjca.reconnection import ConnectionSettings, connect

REFUSED = [
    *("failover:(amqp://a,amqp://b)", "failover://(amqp://a)", "static:(tcp://a)", "discovery:(multicast://default)"),
    *("vm://x?brokerConfig=xbean:http://127.0.0.1:1/x.xml", "tcp://127.0.0.1:61616", "http://127.0.0.1:1", "mqtt://a"),
    *("file:///etc/passwd", "python:os.system", "embedded:x", "AMQP://127.0.0.1:1", "Embedded://x", "amqp+ws://a"),
    *("amqp://127.0.0.1:1?transport.x=1", "amqp://127.0.0.1:1?brokerConfig=xbean:http://a", "embedded://x?module=os"),
    *("stomp://127.0.0.1:1?java_maps=os.system", "amqp://127.0.0.1:1/path", "amqp://127.0.0.1:1,vm://b"),
    *("amqp://a,failover:(amqp://b):1", "amqps://127.0.0.1:1,amqp://127.0.0.1:2", "amqp://127.0.0.1:1#x"),
]


@pytest.mark.parametrize("url", REFUSED)
def test_an_unknown_form_scheme_or_option_is_refused_before_anything_is_opened(monkeypatch, tmp_path, url):
    opened = []
    monkeypatch.setattr(socket, "create_connection", lambda *args, **options: opened.append(args))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError):
        connect(ConnectionSettings(url))
    assert opened == []
    assert list(tmp_path.iterdir()) == []
