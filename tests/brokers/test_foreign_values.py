"""Values of other clients: ids without "ID:", UUIDs, numbers and bytes as ids, and bodies with a content encoding."""

import gzip
import json
import uuid
from threading import Event

import pytest
from proton import Message, int32, symbol, ulong
from proton.reactor import LinkOption
from proton.utils import BlockingConnection
from raw_stomp import RawSTOMP

from jmsjca import BytesMessage, ConnectionFactory, Queue, ResourceAdapter
from jmsjca.__main__ import run
from jmsjca.errors import NotSupportedError
from jmsjca.management.insight import Insight
from jmsjca.selectors import Selector, build_indexed_selector

SOME = uuid.UUID("12345678-1234-5678-1234-567812345678")
IDS = ["abc", "ID:xyz", SOME, ulong(7), b"\x01\xab\\Z", b"hello", "8", "ID:AMQP_FOO:1", "it's"]
CLASHES = ["7", "ID:7", str(SOME), "ID:AMQP_UUID:" + str(SOME), "AMQP_ULONG:7", ulong(7), SOME]


class _Queue(LinkOption):
    def apply(self, link):
        link.target.capabilities.put_object(symbol("queue"))


@pytest.fixture(params=["artemis", "activemq", "qpid"])
def url(request, broker_url, monkeypatch):
    url = broker_url(f"{request.param}-amqp")
    monkeypatch.setenv("JMSJCA_URL", url)
    return url


@pytest.fixture
def queue():
    return f"foreign.{uuid.uuid4().hex}"


def send(url, queue, ids):
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        session.create_consumer(Queue(queue)).close()  # declares the queue
    foreign = BlockingConnection(url, timeout=60, allowed_mechs="ANONYMOUS")
    sender = foreign.create_sender(queue, options=_Queue())
    for n, each in enumerate(ids):
        sender.send(Message(id=each, correlation_id=each, body=f"{n}", durable=True, properties={"n": n}))
    foreign.close()


def selected(session, queue, selector):
    return [message.properties["n"] for message in session.create_browser(Queue(queue), selector)]


def selectors_of(name, ids):
    quoted = ["'" + each.replace("'", "''") + "'" for each in ids]
    yield from (f"{name} {operator} {each}" for each in quoted for operator in ("=", "<>"))
    yield from (f"NOT {name} = {each}" for each in quoted)
    yield f"{name} IN ({', '.join(quoted[::2])})"
    yield f"{name} NOT IN ({', '.join(quoted[::2])}) AND n < 4"
    yield from (f"{name} {no}LIKE '{p}'" for no in ("", "NOT ") for p in ("%", "ID:%", "ID:x%", "ab%", "%Z", "AMQP%"))
    yield from (f"{name} LIKE '{p}%'" for p in ("ID:AMQP_UUID:", "ID:AMQP_NO_PREFIX:", "ID:AMQP_BINARY:", "ID:AMQP_F"))
    yield from (f"{name} IS NULL", f"{name} IS NOT NULL", f"{name} = text")
    yield from (f"{name} = 'ID:AMQP_UUID:x'", f"{name} = 'ID:AMQP_ULONG:07'", f"{name} = 'abcd'", f"{name} = 'hello'")


def test_an_id_is_selected_as_it_is_shown_or_refused(url, queue):
    send(url, queue, IDS)
    decided = refused = 0
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        messages = list(session.create_browser(Queue(queue)))
        assert len(messages) == len(IDS)
        exact = connection.capabilities.exact_selectors
        for name, ids in {
            "JMSMessageID": [message.message_id for message in messages],
            "JMSCorrelationID": [message.correlation_id for message in messages],
        }.items():
            for n, each in enumerate(ids):  # what a program looks for
                told = "'" + each.replace("'", "''") + "'"
                try:
                    assert selected(session, queue, f"{name} = {told}") == [n]
                except NotSupportedError:
                    assert (name, type(IDS[n])) == ("JMSCorrelationID", bytes)
            for selector in selectors_of(name, ids) if exact else ():
                wanted = [message.properties["n"] for message in messages if Selector(selector).matches(message)]
                try:
                    found = selected(session, queue, selector)
                except NotSupportedError:
                    refused += 1
                else:
                    decided += 1
                    assert (selector, sorted(found)) == (selector, wanted)
    print(f"{decided} of {decided + refused} selectors are decided, and the others are refused")
    assert not exact or decided > 3 * refused


@pytest.fixture
def command(capsys):
    """Run a command with ``--json``; return what it writes."""

    def _command(*arguments):
        status = run([*arguments, "--json"])
        written = capsys.readouterr()
        assert (status, written.err) == (0, "")
        return json.loads(written.out)

    return _command


@pytest.mark.parametrize("change", ["move", "purge", "drop", "edit", "edit letter", "replay"])
def test_every_command_finds_a_message_by_its_id(url, queue, command, change):
    send(url, queue, IDS)
    for n, each in enumerate([message.message_id for message in Insight(url).messages(queue)]):
        assert command("view", queue, each)["body"] == f"{n}"
        assert command("dlq", "show", queue, each)["message_id"] == each
        selector = build_indexed_selector("JMSMessageID = {1}", [each])
        arguments = {
            "move": ["move", queue, f"{queue}.to", "-s", selector],
            "purge": ["purge", queue, "-s", selector],
            "drop": ["dlq", "drop", queue, "-s", selector],
            "edit letter": ["dlq", "edit", queue, each, "--to", f"{queue}.to", "-p", "a=b"],
            "edit": ["edit", queue, each, "-p", "edited=yes"],
            "replay": ["dlq", "replay", queue, "-s", selector, "--to", f"{queue}.to"],
        }[change]
        assert [done["outcome"] for done in command(*arguments)] == ["done"]
    left = Insight(url).messages(queue)
    assert [message.properties.get("edited") for message in left] == (["yes"] * len(IDS) if change == "edit" else [])


def test_ids_that_a_broker_takes_for_one_are_kept_apart(url, queue):
    """Only the message with the id that was named is changed, or none."""
    send(url, queue, CLASHES)
    insight, refused = Insight(url), 0
    messages = list(insight.messages(queue))
    for message in messages[::-1]:
        assert insight.message(queue, message.message_id).body == message.body
        try:
            done = [change.outcome for change in insight.delete(queue, f"n = {message.properties['n']}")]
        except NotSupportedError:
            refused, done = refused + 1, []
        if done == ["done"]:
            messages.remove(message)
        left = [each.body for each in insight.messages(queue)]
        assert sorted(left) == sorted(each.body for each in messages)
    assert refused < len(CLASHES)


ZIPPED = gzip.compress(b'{"a": 1}')


def handled(url, queue, send):
    """Return the type and the body of each message that a handler for bytes gets."""
    adapter, found, done = ResourceAdapter(url), [], Event()

    @adapter.listener(queue, redelivery_handling="3:delete")
    def handle(message: BytesMessage):
        found.append((message.body, message.properties["n"]))
        if len(found) == 2:
            done.set()

    with adapter:
        send()
        assert done.wait(60)
    return sorted(found, key=str)


@pytest.mark.parametrize("pair", ["artemis-amqp", "activemq-amqp", "qpid-amqp", "artemis-stomp"])
def test_a_body_with_a_content_encoding_over_amqp_is_bytes(broker_url, queue, pair):
    def send():
        foreign = BlockingConnection(broker_url(f"{broker}-amqp"), timeout=60, allowed_mechs="ANONYMOUS")
        sender = foreign.create_sender(queue, options=_Queue())
        for n, kind in enumerate(("application/json", "text/plain")):
            told = {"content_type": symbol(kind), "content_encoding": symbol("gzip"), "properties": {"n": int32(n)}}
            sender.send(Message(id=uuid.uuid4(), body=ZIPPED, inferred=True, **told))
        foreign.close()

    broker, _, protocol = pair.partition("-")
    numbers = ["0", "1"] if protocol == "stomp" else [0, 1]
    assert handled(broker_url(pair), queue, send) == [(ZIPPED, n) for n in numbers]


@pytest.mark.parametrize("pair", ["rabbitmq-stomp", "rabbitmq4-stomp"])
def test_a_body_with_a_content_encoding_over_stomp_is_bytes(broker_url, queue, pair):
    def send():
        peer = RawSTOMP(broker_url(pair))
        told = {"destination": f"/queue/{queue}", "content_encoding": "gzip", "content_length": len(ZIPPED)}
        for n, kind in enumerate(("text/plain", "text/plain;charset=utf-8")):
            assert peer.confirm("SEND", ZIPPED, **told, content_type=kind, n=n) == "RECEIPT"
        peer.close()

    assert handled(broker_url(pair), queue, send) == [(ZIPPED, n) for n in ("0", "1")]
