"""The command that checks a broker step by step."""

import json
import socket

import pytest

from jmsjca.management.cli import run
from jmsjca.management.doctor import diagnose


def test_a_healthy_broker(jms_broker_url, capsys):
    assert run(["doctor", jms_broker_url, "--json"]) == 0
    found = {each["check"]: each for each in json.loads(capsys.readouterr().out)}
    assert found["URL"]["detail"] == jms_broker_url
    assert {each["result"] for each in found.values()} == {"ok"}
    assert float(found["round trip"]["detail"].split()[0]) > 0


def test_a_broker_that_is_not_there(capsys):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    assert run(["doctor", f"amqp://127.0.0.1:{port}"]) == 1
    assert "failed" in capsys.readouterr().out


@pytest.mark.parametrize(("url", "remedy"), [("no url", "URL"), ("ampq://host", "did you mean amqp://")])
def test_a_wrong_url_is_the_last_finding(url, remedy):
    *_, last = diagnose(url)
    assert (last.check, last.result) == ("failure", "failed")
    assert remedy in last.detail


def test_no_password_is_shown(capsys):
    run(["doctor", "amqp://ann:hush-4711@127.0.0.1:1?allow_insecure_login=true"])
    assert "hush-4711" not in str(capsys.readouterr())
