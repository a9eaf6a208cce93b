"""What brokers lack over STOMP, shown by the protocol itself: the evidence of capability gaps."""

import uuid

import pytest
from gap_clients import ONE_AHEAD

from jmsjca import ConnectionFactory, Queue, Topic
from jmsjca.errors import InvalidSelectorError

MARKER = "the last"
RABBITMQ = ["rabbitmq", "rabbitmq4"]


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
        ("rabbitmq4", "Subscription not found"),
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


@pytest.mark.parametrize("broker", RABBITMQ)
def test_rabbitmq_keeps_for_its_connection_what_an_ended_subscription_held(client, broker):
    one = client(broker)
    one.send("a")
    one.subscribe()
    one.read()
    assert one.raw.confirm("UNSUBSCRIBE", id="1") == "RECEIPT"
    other = client(broker)
    other.send(MARKER)
    other.subscribe()
    assert other.bodies(1) == [MARKER]


@pytest.mark.parametrize("broker", RABBITMQ)
def test_rabbitmq_sends_a_refused_message_to_the_same_subscription_again(client, broker):
    one = client(broker)
    for body in "ab":
        one.send(body)
    one.subscribe(prefetch_count="1")
    body, headers = one.read()
    assert body == "a"
    one.raw.write("NACK", id=headers["ack"])
    body, headers = one.read()
    assert (body, headers["redelivered"]) == ("a", "true")


@pytest.mark.parametrize(
    ("broker", "least"), [("activemq", "1"), ("artemis", "0"), ("rabbitmq", "1"), ("rabbitmq4", "1")]
)
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


@pytest.mark.parametrize("broker", RABBITMQ)
def test_rabbitmq_takes_no_prefetch_for_no_limit(client, broker):
    one = client(broker)
    for body in "abc":
        one.send(body)
    one.subscribe(prefetch_count="0")
    assert one.bodies(3) == ["a", "b", "c"]


@pytest.mark.parametrize("broker", ["activemq", "rabbitmq", "rabbitmq4"])
def test_messages_come_in_the_order_of_sending_whatever_their_priority(client, broker):
    one = client(broker)
    for priority in "195":
        one.send(priority, priority=priority)
    one.subscribe()
    assert one.bodies(3) == ["1", "9", "5"]


@pytest.mark.parametrize("broker", ["activemq", "rabbitmq", "rabbitmq4", "openmq"])
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


@pytest.mark.parametrize("broker", RABBITMQ)
def test_rabbitmq_delivers_everything_to_a_selector(client, broker):
    one = client(broker)
    one.send("a", colour="blue")
    one.subscribe(selector="colour = 'red'")
    assert one.bodies(1) == ["a"]


@pytest.mark.parametrize("broker", RABBITMQ)
def test_rabbitmq_carries_out_what_is_right_of_a_transaction(client, broker):
    one = client(broker)
    assert one.raw.confirm("BEGIN", transaction="t") == "RECEIPT"
    one.raw.write("ACK", id="T_1@@nothing@@1", transaction="t")
    one.raw.write("SEND", "sent", destination=one.destination, transaction="t", persistent="true")
    one.raw.write("COMMIT", transaction="t", receipt="committed")
    assert one.raw.read()[0] == "ERROR"
    other = client(broker)
    other.subscribe()
    assert other.bodies(1) == ["sent"]


LAST = "the last"
PAGE = 400  # messages that ActiveMQ shows to a browser at most, unless its operator says otherwise
DURABLE = {
    "activemq": {"activemq.subscriptionName": "s"},
    "artemis": {"durable_subscription_name": "s"},
    "rabbitmq": {"durable": "true", "auto_delete": "false"},
    "rabbitmq4": {"durable": "true", "auto_delete": "false"},
}


def durable(broker, subscriber):
    """The headers of a durable subscription; RabbitMQ's is a queue, whose name is everybody's."""
    queue = {"x_queue_name": subscriber.destination[1:].replace("/", ".")} if broker.startswith("rabbitmq") else {}
    return {**DURABLE[broker], **queue}


@pytest.mark.parametrize("broker", ["artemis", "rabbitmq", "rabbitmq4"])
def test_client_id_in_use_is_not_refused(listener, broker):
    name = uuid.uuid4().hex
    for each in [listener(broker, client_id=name) for _ in range(2)]:
        assert each.send(LAST) == "RECEIPT"


@pytest.mark.parametrize("broker", ["artemis", "rabbitmq", "rabbitmq4"])
def test_second_consumer_of_a_durable_subscription_gets_a_part_of_it(listener, broker):
    name = uuid.uuid4().hex
    two = [listener(broker, client_id=name) for _ in range(2)]
    for each in two:
        assert each.joins(**{ONE_AHEAD[broker]: "1"}, **durable(broker, each)) == "RECEIPT"
    other = listener(broker)
    for body in "ab":
        other.send(body)
    assert sorted(each.read()[0] for each in two) == ["a", "b"]


def test_activemq_refuses_a_second_consumer_of_a_durable_subscription(listener):
    """Why it is refused before it is written: the broker's refusal would end the connection."""
    one = listener("activemq", client_id=uuid.uuid4().hex)
    headers = durable("activemq", one)
    assert one.joins(**headers) == "RECEIPT"
    assert one.joins(**headers, id="2") == "ERROR"


def test_artemis_shares_no_subscription_without_a_client_id(listener):
    assert listener("artemis").joins(**DURABLE["artemis"]) == "ERROR"


@pytest.mark.parametrize("broker", RABBITMQ)
def test_rabbitmq_lets_two_topics_share_a_subscription(listener, broker):
    """So a name that is in use is not refused to another topic."""
    one, name = listener(broker), f"gap.{uuid.uuid4().hex}"
    headers = {"x_queue_name": name, "durable": "false", "auto_delete": "true"}
    assert one.joins(**headers) == "RECEIPT"
    assert one.joins(**headers, id="2", destination=f"/topic/{name}") == "RECEIPT"
    for topic in (one.destination, f"/topic/{name}"):
        one.raw.write("SEND", topic, destination=topic)
    assert sorted(one.bodies(2)) == sorted([one.destination, f"/topic/{name}"])


def test_activemq_adds_own_messages_to_a_durable_subscription_that_nobody_consumes_from(listener):
    name = uuid.uuid4().hex
    headers = {"activemq.subscriptionName": "s", "activemq.noLocal": "true"}
    first = listener("activemq", client_id=name)
    assert first.joins(**headers) == "RECEIPT"
    first.leave()
    second = listener("activemq", client_id=name)
    second.send("mine")
    second.subscribe(**headers)
    assert second.bodies(1) == ["mine"]


def test_artemis_delivers_own_messages_that_came_in_a_transaction(listener):
    one = listener("artemis")
    assert one.joins(no_local="true") == "RECEIPT"
    one.send("mine")
    assert one.raw.confirm("BEGIN", transaction="t") == "RECEIPT"
    one.send("mine, in a transaction", transaction="t")
    assert one.raw.confirm("COMMIT", transaction="t") == "RECEIPT"
    assert one.bodies(1) == ["mine, in a transaction"]


@pytest.mark.parametrize("broker", RABBITMQ)
def test_rabbitmq_delivers_own_messages(listener, broker):
    one = listener(broker)
    assert one.joins(no_local="true") == "RECEIPT"
    one.raw.write("SEND", "mine", destination=one.destination)
    assert one.bodies(1) == ["mine"]


@pytest.mark.parametrize("broker", ["activemq", "artemis"])
def test_group_belongs_to_a_subscription_and_not_to_its_connection(client, broker):
    """A consumer here may be several subscriptions, so the rest of a group would wait for the wrong one of them."""
    one = client(broker)
    for name in "12":
        assert one.joins(id=name) == "RECEIPT"
    other = client(broker)
    for body in "ab":
        other.send(body, JMSXGroupID="g")
    assert len({one.read()[1]["subscription"] for _ in "ab"}) == 1


@pytest.mark.parametrize("broker", RABBITMQ)
def test_rabbitmq_spreads_a_group(client, broker):
    one = client(broker)
    for name in "12":
        assert one.joins(id=name) == "RECEIPT"
    other = client(broker)
    for body in "ab":
        other.send(body, JMSXGroupID="g")
    assert {one.read()[1]["subscription"] for _ in "ab"} == {"1", "2"}


def test_activemq_shows_a_browser_one_page_only(client):
    one = client("activemq")
    for _ in range(PAGE + 1):
        one.raw.write("SEND", "a", destination=one.destination)
    one.subscribe("auto", browser="true")
    assert ["browser" in one.read()[1] for _ in range(PAGE + 1)] == [False] * PAGE + [True]


def _temporary(asking, server):
    """The name that others know a new temporary queue by."""
    server.subscribe("auto")
    asking.send("question", reply_to="/temp-queue/answers")
    return server.read()[1]["reply-to"].replace("\\c", ":")


def test_activemq_has_a_queue_of_the_name_of_a_temporary_one(client):
    """Nobody else gets its messages, but its plain name is no secret that keeps others out."""
    asking, server, stranger = (client("activemq") for _ in range(3))
    name = _temporary(asking, server)
    assert stranger.joins(destination=name.replace("/remote-temp-queue/", "/queue/").replace(":", "\\c")) == "RECEIPT"
    assert stranger.joins(id="2", destination=name.replace(":", "\\c")) == "ERROR"


def test_activemq_refuses_what_is_sent_to_a_temporary_queue_that_is_gone(client):
    asking, server, other = (client("activemq") for _ in range(3))
    address = _temporary(asking, server).replace(":", "\\c")
    assert other.send("answer", destination=address) == "RECEIPT"
    asking.leave()
    assert other.send("answer", destination=address) == "ERROR"


def test_artemis_takes_a_temporary_queue_for_any_other(client):
    name = f"/temp-queue/{uuid.uuid4().hex}"
    for each in (client("artemis"), client("artemis")):
        assert each.joins(destination=name) == "RECEIPT"


@pytest.mark.parametrize("broker", RABBITMQ)
def test_rabbitmq_confirms_what_is_sent_to_a_temporary_queue_that_is_gone(client, listener, broker):
    asking, server = client(broker), client(broker)
    server.subscribe("auto")
    asking.send("question", reply_to="/temp-queue/answers")
    address = server.read()[1]["reply-to"]
    asking.leave()
    assert server.send("answer", destination=address) == "RECEIPT"


@pytest.mark.parametrize("source", [Queue, Topic])
def test_activemq_refuses_a_wrong_selector_of_a_queue_and_of_a_topic_alike(broker_url, source):
    with (
        ConnectionFactory(broker_url("activemq-stomp")).create_connection() as connection,
        connection.create_session() as session,
        pytest.raises(InvalidSelectorError),
    ):
        session.create_consumer(source(f"gap.{uuid.uuid4().hex}"), "a = = 1")
