"""Brokers are downloaded once and checked, or are missing with a reason; the user's own take their place."""

import threading
from itertools import islice

import pytest
from brokers import BROKERS, BrokerDied, BrokerMissing, ports
from brokers.configuration import CONF
from brokers.provisioning import SUMS, cache_folder, download_all, provide
from brokers.registry import url_of, variable_of
from jms_java import JavaPeer

SECONDS = 30


@pytest.fixture
def nothing_to_download(tmp_path, monkeypatch):
    """An empty cache, and a Maven Central that has nothing."""
    monkeypatch.setenv("JMSJCA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JMSJCA_MAVEN", tmp_path.as_uri())
    return tmp_path


@pytest.mark.parametrize("name", ["artemis", "activemq", "qpid", "openmq"])
def test_a_broker_that_is_not_to_be_had_is_missing(name, nothing_to_download):
    with pytest.raises(BrokerMissing, match="not in the cache, and cannot be downloaded"):
        BROKERS[name](nothing_to_download).start()
    assert list(cache_folder().iterdir()) == []


def test_a_file_that_is_not_the_pinned_one_is_refused(nothing_to_download):
    _, path = (SUMS / "qpid.sha512").read_text().split()
    file = nothing_to_download / path
    file.parent.mkdir(parents=True)
    file.write_bytes(b"another")
    with pytest.raises(BrokerMissing, match="not the file whose SHA-512 is pinned"):
        download_all("qpid", nothing_to_download)


def test_without_java_a_broker_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(BrokerMissing, match="there is no Java"):
        BROKERS["artemis"](tmp_path).command(tmp_path)


def test_without_javac_its_clients_are_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(BrokerMissing, match="there is no javac"):
        JavaPeer()


def test_clients_that_are_not_to_be_had_are_missing(nothing_to_download):
    with pytest.raises(BrokerMissing, match="not in the cache, and cannot be downloaded"):
        JavaPeer()


def test_two_that_provide_the_same_do_not_collide(nothing_to_download):
    both_fill = threading.Barrier(2, timeout=SECONDS)

    def fill(draft):
        (draft / "file").write_text("whole")
        both_fill.wait()

    threads = [threading.Thread(target=provide, args=("thing", fill)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [folder.name for folder in cache_folder().iterdir()] == ["thing"]
    assert (cache_folder() / "thing" / "file").read_text() == "whole"


def test_every_broker_has_a_configuration():
    assert {folder.name for folder in CONF.iterdir()} == {*BROKERS, "postgresql"}


def test_a_pair_can_be_a_broker_of_the_users(monkeypatch, nothing_to_download):
    monkeypatch.setenv("JMSJCA_ARTEMIS_AMQP_URL", "amqp://mine:5672")
    assert variable_of("artemis-amqp") == "JMSJCA_ARTEMIS_AMQP_URL"
    assert url_of("artemis-amqp") == "amqp://mine:5672"


def test_a_broker_gets_as_many_ports_as_it_has_protocols(monkeypatch, tmp_path, nothing_to_download):
    """Two that were the same ended one start of ActiveMQ in four thousand."""
    protocols = len(BROKERS["activemq"].usual_ports)
    monkeypatch.setattr(ports, "CANDIDATES", [*islice(ports.free_ports(), protocols)])
    broker = BROKERS["activemq"](tmp_path)
    monkeypatch.setattr(broker, "install", lambda: nothing_to_download)
    monkeypatch.setattr(broker, "command", lambda home: (["false"], None))
    with pytest.raises(BrokerDied):
        broker.start()
    assert sorted(broker.ports.values()) == sorted(ports.CANDIDATES)
