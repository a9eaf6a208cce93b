"""What brokers do about subscribers, clients and temporary destinations over STOMP: the evidence of gaps.

The gaps are told in `jmsjca/providers/stomp/brokers/registry.py`.
"""

import uuid

import pytest
from gap_clients import ONE_AHEAD

LAST = "the last"
PAGE = 400  # messages that ActiveMQ shows to a browser at most, unless its operator says otherwise
DURABLE = {
    "activemq": {"activemq.subscriptionName": "s"},
    "artemis": {"durable_subscription_name": "s"},
    "rabbitmq": {"durable": "true", "auto_delete": "false"},
}


def durable(broker, subscriber):
    """The headers of a durable subscription; RabbitMQ's is a queue, whose name is everybody's."""
    queue = {"x_queue_name": subscriber.destination[1:].replace("/", ".")} if broker == "rabbitmq" else {}
    return {**DURABLE[broker], **queue}


@pytest.mark.parametrize("broker", ["artemis", "rabbitmq"])
def test_client_id_in_use_is_not_refused(listener, broker):
    name = uuid.uuid4().hex
    for each in [listener(broker, client_id=name) for _ in range(2)]:
        assert each.send(LAST) == "RECEIPT"


@pytest.mark.parametrize("broker", ["artemis", "rabbitmq"])
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


def test_rabbitmq_lets_two_topics_share_a_subscription(listener):
    """So a name that is in use is not refused to another topic."""
    one, name = listener("rabbitmq"), f"gap.{uuid.uuid4().hex}"
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


def test_rabbitmq_delivers_own_messages(listener):
    one = listener("rabbitmq")
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


def test_rabbitmq_spreads_a_group(client):
    one = client("rabbitmq")
    for name in "12":
        assert one.joins(id=name) == "RECEIPT"
    other = client("rabbitmq")
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


def test_rabbitmq_confirms_what_is_sent_to_a_temporary_queue_that_is_gone(client, listener):
    asking, server = client("rabbitmq"), client("rabbitmq")
    server.subscribe("auto")
    asking.send("question", reply_to="/temp-queue/answers")
    address = server.read()[1]["reply-to"]
    asking.leave()
    assert server.send("answer", destination=address) == "RECEIPT"
