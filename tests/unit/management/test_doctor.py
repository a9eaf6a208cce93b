"""The command that checks a broker step by step."""

import json
import socket
import threading
from contextlib import contextmanager, nullcontext, suppress

import pytest

from jmsjca.__main__ import run
from jmsjca.management.commands import clock_finding, diagnose
from tests.unit.providers.stomp.broker import Peer


def findings(capsys, url):
    """Return the exit status of the command, and its findings by check."""
    status = run(["doctor", url, "--json"])
    return status, {each["check"]: each for each in json.loads(capsys.readouterr().out)}


def test_a_healthy_broker(jms_broker_url, capsys):
    status, found = findings(capsys, jms_broker_url)
    assert status == 0
    assert found["URL"]["detail"] == jms_broker_url
    assert {each["result"] for each in found.values()} == {"ok"}
    assert "SQLite" in found["broker"]["detail"]
    assert found["clock"]["detail"].startswith(("+0.0", "-0.0"))
    assert float(found["round trip"]["detail"].split()[0]) > 0


def test_a_broker_that_prepares_no_units_is_asked_over_one_connection():
    with Peer(connected={"server": None}) as peer:
        found = [each.check for each in diagnose(peer.url)]
    assert "connection and login" in found
    assert sum(place in {"CONNECT", "STOMP"} for place in peer.places) == 1


@contextmanager
def server(answer):
    """Yield the port of a server that answers the first bytes of a connection, and ends it."""

    def serve():
        with suppress(OSError), listener.accept()[0] as accepted:
            accepted.recv(1000)
            accepted.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(60)


def closed_port():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        return closed.getsockname()[1]


UNREACHABLE = {
    "refused": (None, "amqp://127.0.0.1:{port}", "nothing listens there: start the broker, or correct"),
    "refused over STOMP": (None, "stomp://127.0.0.1:{port}", "nothing listens there: start the broker, or correct"),
    "DNS": (None, "amqp://broker.invalid:{port}", "the name of the host is not known here: correct it"),
    "no TLS": (b"HTTP/1.1 400 No\r\n\r\n", "amqps://127.0.0.1:{port}", "does not answer with TLS: correct the port"),
    "protocol": (b"HTTP/1.1 400 No\r\n\r\n", "amqp://127.0.0.1:{port}", "speaks HTTP, not AMQP 1.0: correct the port"),
    "login": (
        b"ERROR\nmessage:User name [ann] or password is invalid.\n\n\0",
        "stomp://ann:hush-4711@127.0.0.1:{port}?allow_insecure_login=true",
        "Correct the user name or the password",
    ),
}


@pytest.mark.parametrize("cause", UNREACHABLE)
def test_each_cause_of_a_failure_has_a_line_with_its_remedy(capsys, cause):
    answer, url, remedy = UNREACHABLE[cause]
    with server(answer) if answer else nullcontext() as port:
        status, found = findings(capsys, url.format(port=port or closed_port()))
    assert status == 1
    assert list(found) == ["URL", "failure"]
    assert found["failure"]["result"] == "failed"
    assert remedy in found["failure"]["detail"]
    assert "\n" not in found["failure"]["detail"]
    assert "hush-4711" not in str(found)


def test_a_failure_is_shown_in_a_table_too(capsys):
    assert run(["doctor", f"amqp://127.0.0.1:{closed_port()}"]) == 1
    assert "failed" in capsys.readouterr().out


@pytest.mark.parametrize(("url", "remedy"), [("no url", "URL"), ("ampq://host", "did you mean amqp://")])
def test_a_wrong_url_is_the_last_finding(url, remedy):
    *_, last = diagnose(url)
    assert (last.check, last.result) == ("failure", "failed")
    assert remedy in last.detail


def test_no_password_is_shown(capsys):
    run(["doctor", "amqp://ann:hush-4711@127.0.0.1:1?allow_insecure_login=true"])
    assert "hush-4711" not in str(capsys.readouterr())


@pytest.mark.parametrize(
    ("found", "result", "detail"),
    [
        (1000.05, "ok", "+0.000 s from that of this machine, ± 0.050 s"),
        (999.0, "ok", "-0.550 s from that of this machine, ± 0.550 s"),
        (1001.0, "ok", "+1.450 s"),
        (1301.25, "failed", "+301.200 s from that of this machine, ± 0.050 s: expirations and delivery delays"),
        (700.25, "failed", "-299.800 s"),
    ],
)
def test_a_difference_of_the_clocks_above_what_is_uncertain_is_a_fault(found, result, detail):
    finding = clock_finding(1000.0, found, 1000.1)
    assert finding.result == result
    assert finding.detail.startswith(detail)
