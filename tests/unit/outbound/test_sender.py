"""The sender, over pooled connections of an embedded broker."""

import asyncio
import threading
import uuid
from contextlib import closing

import pytest
from amqp_peer import Broker, Peer
from amqp_peer.performatives import Declare

from jmsjca import ConnectionFactory, Queue, ResourceAdapter, TextMessage, Topic
from jmsjca.errors import (
    ConnectionLostError,
    InvalidArgumentError,
    NotSupportedError,
    ReplyTimeoutError,
    TransactionInDoubtError,
)
from jmsjca.outbound.connection import Connection
from jmsjca.outbound.pool import ConnectionPool
from jmsjca.outbound.sender import Sender, SendOptions
from jmsjca.outbound.session import Session
from jmsjca.testing.idle import wait_until_idle
from tests.unit.outbound.pooling import LOST, ScriptedFactory


@pytest.mark.parametrize("timeout", [True, None, "30", -1, float("nan")])
def test_a_retry_timeout_is_seconds(url, timeout):
    with ConnectionPool(ConnectionFactory(url)) as pool, pytest.raises(InvalidArgumentError, match="retry_timeout"):
        Sender(pool, retry_timeout=timeout)


@pytest.fixture
def url():
    return f"embedded://sender-{uuid.uuid4().hex}"


@pytest.fixture
def adapter(url):
    with ResourceAdapter(url) as adapter:
        yield adapter


def received(url, queue="orders"):
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        consumer, found = session.create_consumer(Queue(queue)), []
        while (message := consumer.receive(timeout=0)) is not None:
            found.append(message)
        return found


def test_message_has_its_headers_and_properties(adapter, url):
    sent = adapter.send(
        "orders",
        "a pear",
        properties={"region": "EU"},
        correlation_id="c",
        reply_to=Queue("r"),
        type="order",
        priority=7,
    )
    (message,) = received(url)
    assert (message.body, message.message_id, message.get_string_property("region")) == (
        "a pear",
        sent.message_id,
        "EU",
    )
    assert (message.correlation_id, message.reply_to, message.type, message.priority) == ("c", Queue("r"), "order", 7)


def test_destination_is_a_name_or_an_object(adapter, url):
    adapter.naming.bind("jms/orders", Queue("orders"))
    adapter.send("orders", "1")
    adapter.send(Queue("orders"), TextMessage("2"))
    adapter.send("lookup://jms/orders", b"3")
    adapter.send(Topic("nobody"), "4")
    assert [message.body for message in received(url)] == ["1", "2", b"3"]


def test_many_messages_are_one_unit(adapter, url):
    class NoBody:
        pass

    with pytest.raises(ValueError, match="NoBody"):
        adapter.send_many("orders", ["a", NoBody()])
    assert received(url) == []
    assert len(adapter.send_many("orders", ["a", "b", "c"])) == 3
    assert [message.body for message in received(url)] == ["a", "b", "c"]
    twice = TextMessage("a")
    with pytest.raises(InvalidArgumentError, match="stands twice"):
        adapter.send_many("orders", [twice, twice])


def test_single_send_is_committed_where_every_session_is_transacted(url):
    factory = ConnectionFactory(url, options={"JMSJCA.IgnoreTx": "true"})
    factory.send("orders", "a")
    factory.close()
    assert [message.body for message in received(url)] == ["a"]


def test_fifty_threads_send_at_once(adapter, url):
    threads = [threading.Thread(target=adapter.send, args=("orders", str(number))) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(int(message.body) for message in received(url)) == list(range(50))


def test_coroutine_sends(adapter, url):
    asyncio.run(adapter.send_async("orders", "a"))
    assert [message.body for message in received(url)] == ["a"]


def test_request_gets_its_reply_or_a_timeout(adapter):
    @adapter.listener("quotes")
    def quote(message):
        return f"one {message.body}"

    assert adapter.request("quotes", "pear", timeout=30).body == "one pear"
    with pytest.raises(ReplyTimeoutError, match="queue:nobody"):
        adapter.request("nobody", "pear", timeout=0)


def test_send_is_repeated_while_the_broker_cannot_be_reached(url):
    factory = ScriptedFactory(url)
    factory.failures = [LOST, LOST]
    with ConnectionPool(factory) as pool:
        Sender(pool).send("orders", "a")
        factory.failures = [LOST]
    with ConnectionPool(factory) as pool, pytest.raises(ConnectionLostError):
        Sender(pool, retry_timeout=0).send("orders", "b")
    assert [message.body for message in received(url)] == ["a"]


def test_a_unit_that_is_rolled_back_with_its_connection_is_sent_again():
    """A fail-over before the commit: the transaction is gone with the broker, and so nothing can arrive twice."""
    broker, lost = Broker(), []

    def hang_up_once(service, frame):
        if lost:
            service.carry_out(frame)
        else:
            lost.append(frame)
            service.line.end(reset=True)

    broker.instead[Declare] = hang_up_once
    with closing(Peer(broker)) as peer, ConnectionPool(ConnectionFactory(f"amqp://{peer.address}")) as pool:
        Sender(pool).send_many("orders", ["a", "b"])
    assert len(lost) == 1
    assert len(broker.store.queues["orders"]) == 2


@pytest.fixture
def doubtful(monkeypatch):
    """Lets the commits of sessions succeed, and raises errors in place of their confirmations."""
    errors, commit = [], Session.commit

    def committed(session):
        commit(session)
        if errors:
            raise errors.pop(0)

    monkeypatch.setattr(Session, "commit", committed)
    return errors


def test_send_in_doubt_is_not_repeated_without_a_duplicate_id(url, doubtful):
    doubtful.append(TransactionInDoubtError("no answer"))
    with ConnectionPool(ConnectionFactory(url)) as pool, pytest.raises(TransactionInDoubtError):
        Sender(pool).send_many("orders", ["a", "b"])
    assert len(received(url)) == 2


def test_send_in_doubt_is_repeated_with_a_duplicate_id_and_arrives_once(url, doubtful):
    doubtful.append(TransactionInDoubtError("no answer"))
    with ConnectionPool(ConnectionFactory(url)) as pool:
        Sender(pool).send_many("orders", ["a", "b"], duplicate_id="")
    assert [message.body for message in received(url)] == ["a", "b"]


@pytest.mark.parametrize("failure", [InvalidArgumentError, NotSupportedError, ConnectionLostError])
def test_failure_after_a_send_in_doubt_leaves_it_in_doubt(url, doubtful, monkeypatch, failure):
    doubtful.append(TransactionInDoubtError("no answer"))
    with ConnectionPool(ConnectionFactory(url)) as pool:
        sender, create = Sender(pool, retry_timeout=0.1), Connection.create_session
        calls = []

        def refused_later(connection, *arguments):
            calls.append(1)
            if len(calls) > 1:
                raise failure("refused")
            return create(connection, *arguments)

        monkeypatch.setattr(Connection, "create_session", refused_later)
        with pytest.raises(TransactionInDoubtError, match="no answer"):
            sender.send_many("orders", ["a", "b"], duplicate_id="x")


@pytest.mark.parametrize("name", sorted(SendOptions.__annotations__))
def test_none_counts_as_not_given(adapter, url, name):
    sent = adapter.send("orders", "a", **{name: None})
    with pytest.raises(ReplyTimeoutError):
        adapter.request("orders", "a", timeout=0.0, **{name: None})
    messages = received(url)
    assert [message.priority for message in messages] == [sent.priority, 4] == [4, 4]
    assert [message.expiration for message in messages] == [None, None]


@pytest.mark.parametrize("name", ["correlation_id", "reply_to", "type"])
def test_none_leaves_a_header_of_the_message(adapter, url, name):
    message = TextMessage("a", correlation_id="c", reply_to=Queue("answers"), type="t")
    adapter.send("orders", message, **{name: None})
    (sent,) = received(url)
    assert (sent.correlation_id, sent.reply_to, sent.type) == ("c", Queue("answers"), "t")


def test_received_message_is_settled_and_others_stay(adapter, url):
    adapter.send_many("orders", ["a", "b", "c"])
    assert adapter.receive("orders", timeout=5).body == "a"
    assert adapter.receive("queue:orders", selector="JMSPriority = 9", timeout=0) is None
    assert [(message.body, message.delivery_count) for message in received(url)] == [("b", 1), ("c", 1)]
    assert adapter.receive("orders", timeout=0) is None


def test_message_is_received_from_a_coroutine(adapter):
    adapter.send("orders", "a")
    assert asyncio.run(adapter.receive_async("orders", timeout=5)).body == "a"


def test_many_received_messages_are_settled_at_the_end_of_the_block(adapter, url):
    adapter.send_many("orders", ["a", "b", "c"])
    with pytest.raises(KeyError), adapter.receive_many("orders", 2, timeout=5) as messages:
        raise KeyError
    assert [message.body for message in messages] == ["a", "b"]
    with adapter.receive_many("orders", 2, timeout=5) as messages:
        assert [(message.body, message.redelivered) for message in messages] == [("a", True), ("b", True)]
    with adapter.receive_many("orders", 100, timeout=0) as messages:
        assert [message.body for message in messages] == ["c"]
    with adapter.receive_many("orders", 100, timeout=0) as messages:
        assert messages == []


def test_many_are_received_where_the_broker_has_no_transactions(adapter, url, lacking):
    lacking("atomic")
    adapter.send("orders", "a")
    with pytest.raises(KeyError), adapter.receive_many("orders", 2, timeout=5):
        raise KeyError
    with adapter.receive_many("orders", 2, timeout=5) as messages:
        assert [message.body for message in messages] == ["a"]
    assert received(url) == []


@pytest.mark.parametrize("limit", [0, -1, 1.5, None, True])
def test_limit_of_received_messages_is_a_number(adapter, limit):
    with pytest.raises(InvalidArgumentError, match="limit must be"), adapter.receive_many("orders", limit):
        pass


def test_receive_in_a_handler_does_not_join_its_unit(adapter, url):
    adapter.send("more", "b")

    @adapter.listener("orders", redelivery_handling="1:delete")
    def handle(message):
        adapter.receive("more", timeout=5)
        raise KeyError

    adapter.send("orders", "a")
    wait_until_idle(adapter)
    assert received(url, "more") == []
