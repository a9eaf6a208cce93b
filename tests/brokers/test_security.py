"""Logging in to real brokers over AMQP, with and without TLS."""

import logging
import uuid
from contextlib import closing
from random import Random

import pytest
from brokers import BROKERS, PAIRS, registry
from brokers.registry import variable_of
from certificate_authority import Authority

from jmsjca import (
    BytesMessage,
    ConnectionFactory,
    MapMessage,
    Message,
    ObjectMessage,
    Outcome,
    ResourceAdapter,
    StreamMessage,
)
from jmsjca.config import Limits
from jmsjca.destinations import Queue
from jmsjca.errors import JMSSecurityError, ResourceAllocationError
from jmsjca.messages import TextMessage
from jmsjca.outbound import ConnectionPool
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.testing.contract.harness import prepare
from tests.unit.inbound.listeners import Inbox, Recorder, send
from tests.unit.outbound.queues import PATIENCE, put, shown, take

ALLOWED = "?allow_insecure_login=true"
WRONG = "wr0ng-secret"
SECONDS = 30


@pytest.fixture(params=[name for name in BROKERS if f"{name}-amqp" in PAIRS])
def login_url(request, broker_url, monkeypatch):
    """The port for users of a broker that the tests started: a password that is given must be right there."""
    monkeypatch.delenv(variable_of(f"{request.param}-amqp"), raising=False)
    broker_url(f"{request.param}-amqp")
    broker = registry.shared(request.param)
    return broker.url("amqp-plain" if "amqp-plain" in broker.ports else "amqp")


def login(url, password="jmsjca", user="jmsjca"):  # noqa: S107
    return connect(ConnectionSettings(url, user_name=user, password=password))


def test_right_password_in_the_clear_is_accepted_where_that_is_allowed(login_url):
    connection = login(login_url + ALLOWED)
    queue = Queue("security.login")
    unit = connection.unit(atomic=False)
    unit.send(prepare(TextMessage("x"), queue), queue)
    unit.commit()
    connection.close()


def test_right_password_in_the_url(login_url):
    login_url = login_url.replace("://", "://jmsjca:jmsjca@")
    connect(ConnectionSettings(login_url + ALLOWED)).close()


@pytest.mark.parametrize("option", ["", "?allow_insecure_login=false"])
def test_password_is_not_sent_in_the_clear(login_url, option):
    with pytest.raises(JMSSecurityError, match="in the clear"):
        login(login_url + option)


@pytest.mark.parametrize(("user", "password"), [("jmsjca", WRONG), ("jmsjca", ""), ("nobody", "jmsjca")])
def test_wrong_login_is_refused_and_shown_nowhere(login_url, caplog, user, password):
    caplog.set_level(logging.DEBUG)
    with pytest.raises(JMSSecurityError) as told:
        login(login_url + ALLOWED, password, user)
    assert WRONG not in f"{caplog.text} {told.value!r} {told.value.__cause__!r} {told.value.__context__!r}"


def test_rotated_password_is_used_by_the_next_connection(login_url, tmp_path):
    """Nothing is restarted: the function and the file are asked at each new connection, also by a pool."""
    secret, asked = tmp_path / "secret", []

    def source():
        asked.append(secret.read_text())
        return "jmsjca", asked[-1]

    secret.write_text(WRONG)
    factories = [
        ConnectionFactory(login_url + ALLOWED, credentials=source),
        ConnectionFactory(login_url + ALLOWED, credentials=f"file:{secret}", user_name="jmsjca"),
    ]
    for factory in factories:
        with pytest.raises(JMSSecurityError):
            factory.create_connection()
    secret.write_text("jmsjca")
    for factory in factories:
        with ConnectionPool(factory) as pool:
            for _ in range(2):
                with pool.session() as session:
                    session.create_producer(Queue("security.rotated")).send(TextMessage("x"))
                pool.drain()
            assert pool.get_stats()["connections_num"] == 2
    assert asked == [WRONG, "jmsjca", "jmsjca"]


def test_a_message_over_the_limit_stays_with_the_broker(login_url):
    """It is refused while it arrives; who takes larger ones gets it."""
    queue, url = Queue(f"security.large.{uuid.uuid4().hex}"), login_url + ALLOWED
    with closing(login(url)) as sender:
        unit = sender.unit(atomic=False)
        unit.send(prepare(TextMessage("x" * 500_000), queue), queue)
        unit.commit()
    small = ConnectionSettings(url, "jmsjca", "jmsjca", limits=Limits(message_bytes=100_000))
    with closing(connect(small)) as connection, pytest.raises(ResourceAllocationError, match="raise Limits"):
        connection.consumer(queue).receive(1, SECONDS)
    with closing(login(url)) as connection:
        (delivery,) = connection.consumer(queue).receive(1, SECONDS)
        assert len(delivery.message.body) == 500_000
        unit = connection.unit(atomic=False)
        unit.take([delivery])
        unit.commit()


PASSWORD = "jmsjca"  # noqa: S105  # of the tests' brokers
BODIES = [
    TextMessage("ünïcödé"),
    BytesMessage(bytes(range(256))),
    MapMessage({"a": 1, "b": b"\x00"}),
    StreamMessage([1, "two", 3.0]),
    ObjectMessage({"a": [1, None]}),
    Message(),
]


@pytest.fixture
def url_tls(encrypted_artemis):
    broker, authority = encrypted_artemis
    return f"{broker.url('amqps')}?ca_file={authority.file}"


@pytest.fixture
def certified_url(encrypted_artemis):
    """Where clients need a certificate."""
    broker, authority = encrypted_artemis
    return f"{broker.url('amqps-certified')}?ca_file={authority.file}"


@pytest.fixture
def other(tmp_path):
    """An authority that the broker does not know."""
    return Authority(tmp_path)


@pytest.fixture
def queue():
    return Queue(f"tls.{uuid.uuid4().hex}")


@pytest.fixture
def connection(url_tls):
    with ConnectionFactory(url_tls).create_connection() as connection:
        yield connection


def own(authority):
    """What a URL says of a client's certificate."""
    certificate, key = authority.certify("client", "extendedKeyUsage=clientAuth\n")
    return f"&certificate_file={certificate}&key_file={key}"


def through(connection, queue, messages):
    """Send messages, and receive as many."""
    with connection.create_session() as session:
        producer, consumer = session.create_producer(queue), session.create_consumer(queue)
        for message in messages:
            producer.send(message)
        return [consumer.receive(PATIENCE) for _ in messages]


def content(message):
    """Its body; that of an object as the bytes that it is carried in."""
    return type(message), message.pickled if isinstance(message, ObjectMessage) else message.body


def test_every_kind_of_body_arrives(connection, queue):
    assert list(map(content, through(connection, queue, BODIES))) == list(map(content, BODIES))


def test_many_large_messages_arrive_whole(connection, queue):
    """Each is larger than a record of TLS, and the commit writes more than fits into the socket."""
    bodies = list(map(Random(0).randbytes, [700_001] * 30))
    with connection.create_session(transacted=True) as session:
        producer, consumer = session.create_producer(queue), session.create_consumer(queue)
        for body in bodies:
            producer.send(BytesMessage(body))
        session.commit()
        received = [consumer.receive(PATIENCE).body for _ in bodies]
        session.commit()
    assert [number for number, body in enumerate(bodies) if received[number] != body] == []


def test_what_a_transaction_received_and_sent_is_one(connection, queue):
    target = Queue(f"{queue.name}.moved")
    put(connection, "a", to=queue)
    with connection.create_session(transacted=True) as session:
        consumer, producer = session.create_consumer(queue), session.create_producer(target)
        for end in (session.rollback, session.commit):
            assert take(consumer, 1) == ["a"]
            producer.send(TextMessage("moved"))
            end()
    assert (shown(connection, queue), shown(connection, target)) == ([], ["moved"])


def test_a_listener_tries_a_failed_message_again(url_tls, queue):
    inbox, recorder = Inbox(ValueError("not now")), Recorder()
    adapter = ResourceAdapter(url_tls, hooks=[recorder])
    adapter.listener(queue)(inbox)
    with adapter:
        send(adapter, "a", to=queue.name)
        recorder.await_outcome(Outcome.ROLLED_BACK)
        recorder.await_outcome(Outcome.COMMITTED)
    assert inbox.take(2) == [("a", 1), ("a", 2)]


@pytest.mark.parametrize(("password", "right"), [(PASSWORD, True), ("wrong", False)])
def test_a_password_needs_no_leave_to_travel(url_tls, password, right):
    factory = ConnectionFactory(url_tls, user_name="jmsjca", password=password)
    if right:
        factory.create_connection().close()
    else:
        with pytest.raises(JMSSecurityError):
            factory.create_connection()


def test_a_broker_of_another_authority_is_not_trusted(encrypted_artemis, other):
    broker, _ = encrypted_artemis
    with pytest.raises(JMSSecurityError, match="not to be trusted"):
        ConnectionFactory(f"{broker.url('amqps')}?ca_file={other.file}").create_connection()


def test_a_broker_that_the_system_does_not_know_is_not_trusted(encrypted_artemis):
    broker, _ = encrypted_artemis
    with pytest.raises(JMSSecurityError, match="not to be trusted"):
        ConnectionFactory(broker.url("amqps")).create_connection()


def test_a_certified_client_is_let_in(encrypted_artemis, certified_url, queue):
    _, authority = encrypted_artemis
    with ConnectionFactory(certified_url + own(authority)).create_connection() as connection:
        assert [m.body for m in through(connection, queue, [TextMessage("a")])] == ["a"]


def test_a_client_without_a_certificate_is_refused(certified_url):
    with pytest.raises(JMSSecurityError, match="certificate"):
        ConnectionFactory(certified_url, user_name="jmsjca", password=PASSWORD).create_connection()


def test_a_client_of_another_authority_is_refused(certified_url, other):
    with pytest.raises(JMSSecurityError, match="certificate"):
        ConnectionFactory(certified_url + own(other)).create_connection()
