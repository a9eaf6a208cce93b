"""What the doctor finds on each broker: name and version, the clock, a round trip; and what a failed login needs."""

import json
from urllib.parse import quote

import pytest
from brokers import BROKERS, PAIRS, registry

from jmsjca.__main__ import run
from jmsjca.config import ConnectionURL

TELLS_TIME = {"artemis-amqp", "qpid-amqp"}
WITHOUT_VERSION = {"openmq-stomp"}


def findings(capsys, url):
    status = run(["doctor", url, "--json"])
    return status, {each["check"]: each for each in json.loads(capsys.readouterr().out)}


@pytest.mark.parametrize("pair", PAIRS)
def test_each_broker_is_named_with_its_version(broker_url, capsys, pair):
    url, name = broker_url(pair), pair.rpartition("-")[0]
    status, found = findings(capsys, url)
    assert status == 0
    assert (BROKERS[name].release in found["broker"]["detail"]) is (pair not in WITHOUT_VERSION)
    assert found["clock"]["result"] == ("ok" if pair in TELLS_TIME else "missing")
    assert all(each["detail"] for each in found.values() if each["result"] == "missing")
    measured = found["round trip"]
    assert measured["result"] == "missing" or float(measured["detail"].split()[0]) > 0


def test_what_a_client_of_java_needs_is_named(broker_url, capsys):
    url = broker_url("activemq-java")
    status, found = findings(capsys, url)
    assert status == 0
    assert "version" in found["Java"]["detail"]
    assert found["bridge to Java"]["detail"].endswith(".jar")
    assert "with the API jakarta.jms" in found["client's jars"]["detail"]
    assert BROKERS["activemq"].release in found["broker"]["detail"]


def test_missing_jars_of_a_client_are_told_after_java(capsys):
    status, found = findings(capsys, "wmq://127.0.0.1:1")
    assert status == 1
    assert [each["result"] for each in found.values()] == ["ok", "ok", "ok", "failed"]
    assert "needs the option class_path" in found["failure"]["detail"]


def test_activemq_tells_its_time_over_its_management(broker_url, capsys):
    url = broker_url("activemq-stomp")
    management = registry.shared("activemq").url("jolokia")
    _, found = findings(capsys, f"{url}?management_url={management}")
    assert found["clock"]["result"] == "ok"


def test_a_user_without_the_permission_learns_why_there_is_no_time(broker_url, capsys):
    url = broker_url("artemis-amqp").replace("amqp://", "amqp://limited:limited@")
    status, found = findings(capsys, f"{url}?allow_insecure_login=true")
    assert (status, found["clock"]["result"]) == (0, "missing")
    assert "grant the permission" in found["clock"]["detail"]


def test_a_wrong_password_is_told_with_the_remedy(broker_url, capsys):
    url = broker_url("artemis-amqp").replace("amqp://", "amqp://limited:wrong-4711@")
    status, found = findings(capsys, f"{url}?allow_insecure_login=true")
    assert status == 1
    assert "Correct the user name or the password" in found["failure"]["detail"]
    assert "wrong-4711" not in str(found)


def test_a_certificate_that_is_not_trusted_is_told_with_the_remedy(encrypted_artemis, capsys):
    broker, _ = encrypted_artemis
    status, found = findings(capsys, broker.url("amqps"))
    assert status == 1
    assert "name its authority with the option ca_file" in found["failure"]["detail"]


OTHER = {"amqp": "stomp", "stomp": "amqp"}


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("pair", PAIRS)
def test_the_wrong_protocol_of_a_port_is_told_with_the_remedy(broker_url, capsys, pair, secure):
    url, protocol = broker_url(pair), pair.rpartition("-")[2]
    port = ConnectionURL.parse(url).port
    scheme = {"amqp": "amqps", "stomp": "stomp+ssl"}[protocol] if secure else OTHER[protocol]
    status, found = findings(capsys, f"{scheme}://127.0.0.1:{port}")
    assert status == 1
    assert found["failure"]["detail"].startswith("WrongProtocolError")
    assert "correct the port or the protocol" in found["failure"]["detail"]


@pytest.mark.parametrize("scheme", ["amqp", "stomp", "stomp+ssl"])
def test_another_protocol_than_amqp_over_tls_is_told_with_the_remedy(encrypted_artemis, capsys, scheme):
    broker, authority = encrypted_artemis
    port = ConnectionURL.parse(broker.url("amqps")).port
    status, found = findings(capsys, f"{scheme}://127.0.0.1:{port}?ca_file={quote(str(authority.file))}")
    assert status == 1
    assert "orrect the port" in found["failure"]["detail"]


def test_each_host_of_a_fail_over_list_is_tried(broker_url, capsys):
    """The passive node of a pair accepts nobody: the others do, and the first of these is used."""
    url = broker_url("artemis-amqp")
    (address,) = ConnectionURL.parse(url).addresses
    status, found = findings(capsys, f"amqp://127.0.0.1:1,{address}")
    assert status == 0
    assert found["host 127.0.0.1:1"]["result"] == "missing"
    assert "passive, or not running: Cannot connect" in found["host 127.0.0.1:1"]["detail"]
    assert found[f"host {address}"]["detail"] == "accepts clients; connections begin with it"
    assert "artemis" in found["broker"]["detail"]
