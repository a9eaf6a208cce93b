"""The brokers of the tests: started, killed and restarted with their data."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from brokers import BROKERS, PAIRS, BrokerDied, registry
from brokers.__main__ import developers_broker
from brokers.configuration import CONF
from brokers.handshake import serves
from brokers.ports import HOST
from brokers.provisioning import cache_folder
from brokers.registry import variable_of
from brokers.state import is_alive
from proton import ConnectionException, Delivery, Message, Terminus, symbol
from proton.reactor import LinkOption
from proton.utils import BlockingConnection

from tests.unit.inbound.deliveries import until

SECONDS = 30
AMQP = [name for name in BROKERS if f"{name}-amqp" in PAIRS]


@pytest.fixture(autouse=True)
def no_brokers_of_the_users(monkeypatch):
    """The machinery is tested with what it starts itself."""
    for pair in PAIRS:
        monkeypatch.delenv(variable_of(pair), raising=False)


@pytest.mark.parametrize(
    "name", [name if name == "artemis" else pytest.param(name, marks=pytest.mark.torture) for name in AMQP]
)
def test_what_was_sent_outlives_a_stop_and_a_kill(name, own_broker):
    """The stop comes first: RabbitMQ writes down some seconds later that there is a new queue."""
    broker = own_broker(name)
    url = broker.url("amqp")
    send(url, queue(name, "outlives"), "before")
    broker.restart()
    send(url, queue(name, "outlives"), "body")
    tree = [broker.process, *broker.process.children(recursive=True)]
    broker.kill()
    assert not any(map(is_alive, tree))
    assert not serves("amqp", broker.ports["amqp"])
    broker.restart()
    assert broker.url("amqp") == url
    assert [receive(url, queue(name, "outlives")) for _ in range(2)] == ["before", "body"]


@pytest.mark.parametrize("name", AMQP)
def test_a_password_that_is_given_must_be_right(name, broker_url):
    broker_url(f"{name}-amqp")
    broker = registry.shared(name)
    url = broker.url("amqp-plain" if "amqp-plain" in broker.ports else "amqp")
    login(url, "jmsjca").close()
    with pytest.raises(ConnectionException, match="Authentication failed"):
        login(url, "wrong")


@pytest.mark.parametrize("name", [name for name in BROKERS if f"{name}-stomp" in PAIRS])
def test_a_password_that_is_given_must_be_right_over_stomp(name, broker_url):
    broker_url(f"{name}-stomp")
    port = registry.shared(name).ports["stomp"]
    assert stomp_login(port, "jmsjca") == b"CONNECTED"
    assert stomp_login(port, "wrong").startswith(b"ERROR")


@pytest.mark.parametrize("name", AMQP)
def test_what_fails_comes_again_and_again(name, broker_url):
    """No broker gives up on a message by itself: dead letters are the endpoints' business."""
    url, address = broker_url(f"{name}-amqp"), queue(name, "again")
    send(url, address, "body")
    for _ in range(20):
        assert receive(url, address, fail) == "body"
    assert receive(url, address) == "body"


def test_brokers_of_one_kind_run_side_by_side(own_broker):
    one, other = own_broker("artemis"), own_broker("artemis")
    send(one.url("amqp"), queue("artemis", "same"), "one")
    send(other.url("amqp"), queue("artemis", "same"), "other")
    assert receive(one.url("amqp"), queue("artemis", "same")) == "one"
    assert receive(other.url("amqp"), queue("artemis", "same")) == "other"


def test_all_pairs_of_a_broker_share_its_process(broker_url):
    urls = {pair: broker_url(pair) for pair in PAIRS}
    assert len(set(urls.values())) == len(PAIRS)
    assert set(registry.known()) == set(BROKERS)


def test_a_broker_that_dies_on_start_shows_its_log(own_broker):
    broker = own_broker("activemq")
    broker.stop()
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # what the broker's connections have left
        taken.bind((HOST, broker.ports["amqp"]))
        taken.listen()
        with pytest.raises(BrokerDied, match="Address already in use"):
            broker.start()


def test_the_developers_brokers_outlive_the_command(broker_url, tmp_path, monkeypatch):
    broker_url("activemq-amqp")  # provides the software
    (tmp_path / "brokers").symlink_to(cache_folder())
    monkeypatch.setenv("JMSJCA_CACHE", str(tmp_path))
    started = command("start", "activemq")
    broker = developers_broker("activemq")
    assert {broker.url("amqp"), broker.url("stomp")} <= set(started.split())
    send(broker.url("amqp"), "outlives", "body")
    assert "stopped" in command("kill", "activemq")
    assert broker.url("amqp") in command("restart", "activemq")
    assert receive(broker.url("amqp"), "outlives") == "body"
    assert "stopped" in command("stop", "activemq")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_test_run_that_is_killed_leaves_no_broker_behind(number):
    program = "from brokers import registry; b = registry.own('qpid').start(); print(b.process.pid, b.folder); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": "tests/support"},
    ) as run:  # fmt: skip
        pid, folder = run.stdout.readline().split()
        broker = psutil.Process(int(pid))
        tree = [broker, *broker.children(recursive=True)]
        run.send_signal(number)
    _, alive = psutil.wait_procs(tree, timeout=SECONDS)
    left = [process for process in alive if is_alive(process)]
    for process in left:
        process.kill()
    assert not left
    until(lambda: not Path(folder).exists())


def command(*words):
    environment = {**os.environ, "PYTHONPATH": str(CONF.parent.parent)}
    told = [sys.executable, "-m", "brokers", *words]
    return subprocess.run(told, env=environment, check=True, capture_output=True, text=True).stdout


def queue(name, address):
    # RabbitMQ's plugin wants to be told what an address names.
    return f"/queue/{address}" if name.startswith("rabbitmq") else address


class ToQueue(LinkOption):
    """Asks for a queue, which Artemis would make a topic's address, and a durable one, which RabbitMQ would not."""

    def apply(self, link):
        terminus = link.target if link.is_sender else link.source
        terminus.capabilities.put_object(symbol("queue"))
        terminus.durability = Terminus.CONFIGURATION


def connect(url):
    return BlockingConnection(url, timeout=SECONDS, allowed_mechs="ANONYMOUS")


def send(url, address, body):
    connection = connect(url)
    connection.create_sender(address, options=ToQueue()).send(Message(body=body, durable=True))
    connection.close()


def accept(receiver):
    receiver.accept()


def fail(receiver):
    receiver.fetcher.unsettled[0].local.failed = True
    receiver.settle(Delivery.MODIFIED)


def receive(url, address, settle=accept):
    connection = connect(url)
    receiver = connection.create_receiver(address, options=ToQueue())
    body = receiver.receive().body
    settle(receiver)
    connection.close()
    return body


def login(url, password):
    plain = {"allowed_mechs": "PLAIN", "allow_insecure_mechs": True}
    return BlockingConnection(url, timeout=SECONDS, user="jmsjca", password=password, **plain)


def stomp_login(port, password):
    with socket.create_connection((HOST, port), SECONDS) as connection:
        login = f"login:jmsjca\npasscode:{password}"
        connection.sendall(f"CONNECT\naccept-version:1.2\nhost:/\n{login}\n\n\0".encode())
        return connection.recv(len("CONNECTED"))
