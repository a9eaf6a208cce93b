"""What brokers do where they lack something over STOMP, by the protocol itself: each case is the evidence of a gap.

The gaps are told in `jmsjca/providers/stomp/brokers`; acknowledgements in transactions are in `test_statements.py`.
Frames are printed: pytest shows them when one is true no more.
"""

import pytest
from gap_clients import ONE_AHEAD

MARKER = "the last"


@pytest.mark.parametrize("broker", ["activemq", "artemis"])
def test_what_is_refused_is_gone(client, broker):
    one = client(broker)
    one.send("a")
    one.subscribe()
    _, headers = one.read()
    assert one.raw.confirm("NACK", id=headers["ack"]) == "RECEIPT"
    assert one.raw.confirm("UNSUBSCRIBE", id="1") == "RECEIPT"
    other = client(broker)
    other.send(MARKER)
    other.subscribe()
    assert other.bodies(1) == [MARKER]


def test_activemq_does_not_send_an_aborted_message_again_while_its_subscription_lives(client):
    one = client("activemq")
    one.send("a")
    one.subscribe()
    _, headers = one.read()
    assert one.raw.confirm("BEGIN", transaction="t") == "RECEIPT"
    assert one.raw.confirm("ACK", id=headers["ack"], transaction="t") == "RECEIPT"
    assert one.raw.confirm("ABORT", transaction="t") == "RECEIPT"
    client("activemq").send(MARKER)
    assert one.bodies(1) == [MARKER]


@pytest.mark.parametrize(("broker", "redelivered"), [("activemq", "true"), ("artemis", "false"), ("openmq", "true")])
def test_end_of_a_subscription_gives_to_others_what_it_held(client, broker, redelivered):
    one = client(broker)
    for body in "ab":
        one.send(body)
    one.subscribe()
    assert one.bodies(2) == ["a", "b"]
    assert one.raw.confirm("UNSUBSCRIBE", id="1") == "RECEIPT"
    other = client(broker)
    other.subscribe()
    got = [other.read() for _ in "ab"]
    assert [body for body, _ in got] == ["a", "b"]
    assert [headers.get("redelivered", "false") for _, headers in got] == [redelivered] * 2


@pytest.mark.parametrize(
    ("broker", "answer"),
    [
        ("activemq", "RECEIPT"),
        ("artemis", "AMQ339018"),
        ("rabbitmq", "Subscription not found"),
        ("openmq", "BSS4021"),
    ],
)
def test_acknowledgement_after_the_end_of_its_subscription(client, broker, answer):
    """ActiveMQ's settles nothing, though it says RECEIPT."""
    one = client(broker)
    one.send("a")
    one.subscribe()
    _, headers = one.read()
    assert one.raw.confirm("UNSUBSCRIBE", id="1") == "RECEIPT"
    one.raw.write("ACK", id=headers["ack"], receipt="late")
    assert answer in str(one.raw.read())
    one.raw._socket.close()
    other = client(broker)
    other.subscribe()
    assert other.bodies(1) == ["a"]


def test_rabbitmq_keeps_for_its_connection_what_an_ended_subscription_held(client):
    one = client("rabbitmq")
    one.send("a")
    one.subscribe()
    one.read()
    assert one.raw.confirm("UNSUBSCRIBE", id="1") == "RECEIPT"
    other = client("rabbitmq")
    other.send(MARKER)
    other.subscribe()
    assert other.bodies(1) == [MARKER]


def test_rabbitmq_sends_a_refused_message_to_the_same_subscription_again(client):
    one = client("rabbitmq")
    for body in "ab":
        one.send(body)
    one.subscribe(prefetch_count="1")
    body, headers = one.read()
    assert body == "a"
    one.raw.write("NACK", id=headers["ack"])
    body, headers = one.read()
    assert (body, headers["redelivered"]) == ("a", "true")


@pytest.mark.parametrize(("broker", "least"), [("activemq", "1"), ("artemis", "0"), ("rabbitmq", "1")])
def test_one_message_comes_before_anybody_asks(client, broker, least):
    one = client(broker)
    for body in "ab":
        one.send(body)
    one.subscribe(**{ONE_AHEAD[broker]: least})
    assert one.bodies(1) == ["a"]
    other = client(broker)
    other.subscribe()
    assert other.bodies(1) == ["b"]


def test_activemq_sends_nothing_to_a_subscription_of_no_prefetch(client):
    client("activemq").send("a")
    client("activemq").subscribe(**{"activemq.prefetchSize": "0"})
    other = client("activemq")
    other.subscribe()
    assert other.bodies(1) == ["a"]


def test_rabbitmq_takes_no_prefetch_for_no_limit(client):
    one = client("rabbitmq")
    for body in "abc":
        one.send(body)
    one.subscribe(prefetch_count="0")
    assert one.bodies(3) == ["a", "b", "c"]


@pytest.mark.parametrize("broker", ["activemq", "rabbitmq"])
def test_messages_come_in_the_order_of_sending_whatever_their_priority(client, broker):
    one = client(broker)
    for priority in "195":
        one.send(priority, priority=priority)
    one.subscribe()
    assert one.bodies(3) == ["1", "9", "5"]


@pytest.mark.parametrize("broker", ["activemq", "rabbitmq", "openmq"])
def test_both_are_delivered_that_have_the_same_duplicate_id(client, broker):
    one = client(broker)
    for body in "ab":
        assert one.send(body, _AMQ_DUPL_ID="1") == "RECEIPT"
    one.subscribe()
    assert one.bodies(2) == ["a", "b"]


def test_activemq_shows_a_browser_what_a_consumer_holds(client):
    one = client("activemq")
    for body in "abc":
        one.send(body)
    one.subscribe(**{"activemq.prefetchSize": "1"})
    assert one.bodies(1) == ["a"]
    browser = client("activemq")
    browser.subscribe(browser="true")
    assert browser.bodies(3) == ["a", "b", "c"]
    assert browser.read()[1]["browser"] == "end"


@pytest.mark.parametrize(("broker", "prefix"), [("activemq", ""), ("artemis", r"convert_string_expressions\c")])
def test_a_text_compares_as_the_number_that_it_holds(client, broker, prefix):
    one = client(broker)
    one.send("a", n="2")
    one.subscribe(selector=f"{prefix}n = 2")
    assert one.bodies(1) == ["a"]


def test_artemis_has_no_message_ids(client):
    one = client("artemis")
    one.send("a", message_id="ID:1", JMSMessageID="ID:1")
    one.subscribe(selector="AMQUserID IS NULL")
    assert one.bodies(1) == ["a"]


def test_artemis_knows_headers_by_names_of_its_own(client):
    """Why selectors are rewritten for it."""
    one = client("artemis")
    one.send("a", priority="7")
    one.subscribe(selector="JMSPriority IS NULL AND AMQPriority = 7")
    assert one.bodies(1) == ["a"]


def test_rabbitmq_delivers_everything_to_a_selector(client):
    one = client("rabbitmq")
    one.send("a", colour="blue")
    one.subscribe(selector="colour = 'red'")
    assert one.bodies(1) == ["a"]


def test_rabbitmq_carries_out_what_is_right_of_a_transaction(client):
    one = client("rabbitmq")
    assert one.raw.confirm("BEGIN", transaction="t") == "RECEIPT"
    one.raw.write("ACK", id="T_1@@nothing@@1", transaction="t")
    one.raw.write("SEND", "sent", destination=one.destination, transaction="t", persistent="true")
    one.raw.write("COMMIT", transaction="t", receipt="committed")
    assert one.raw.read()[0] == "ERROR"
    other = client("rabbitmq")
    other.subscribe()
    assert other.bodies(1) == ["sent"]
