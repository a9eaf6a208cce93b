"""Durable subscriptions over STOMP whose topic or selector changes, above all on Artemis, which does not notice it."""

import uuid
from dataclasses import replace

import pytest

from jmsjca.config import Limits
from jmsjca.destinations import Subscription, Topic
from jmsjca.errors import IllegalStateError, InvalidDestinationError, InvalidSelectorError, NotSupportedError
from jmsjca.messages import TextMessage
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.testing.contract.harness import Harness, bodies, prepare

SELECTORS = (
    None,
    "n = 1",
    "  n = 1\t",
    "n = 1 AND (w IS NULL OR w = 'it''s')",
    "n = 1 AND (w IS NULL OR w = 'a:b\\c\nd\re  f\t')",
    "n = 1 AND (w IS NULL OR w = 'é\u4e2d\U0001f600\u2028\"')",
    "n = 1 AND JMSPriority > -1 AND JMSDeliveryMode = 'PERSISTENT'",
    "n = 1 AND (w IS NULL OR w LIKE '100!%' ESCAPE '!')",
    f"n = 1 AND (w IS NULL OR w IN ({', '.join(map(repr, map(str, range(2000))))}))",
)


@pytest.fixture
def harness(broker_url):
    harness = Harness(broker_url("artemis-stomp"))
    yield harness
    harness.close()


def one(body):
    return TextMessage(body, properties={"n": 1})


def left(harness, subscription, selector, url=None):
    """Open and close a consumer on a connection of its own."""
    connection = harness.connect(subscription.client_id, url=url)
    connection.consumer(subscription, selector=selector).close()
    connection.close()


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda selector: repr(selector)[:40])
def test_unchanged_one_keeps_its_messages(harness, selector):
    subscription = replace(harness.subscription(), name="a.b")
    left(harness, subscription, selector)
    harness.send_messages(subscription.topic, one("kept"))
    left(harness, subscription, selector)
    connection = harness.connect(subscription.client_id)
    assert bodies(harness.gather(connection.consumer(subscription, selector=selector), 1)) == ["kept"]


@pytest.mark.parametrize("name", ["s", "a.b", "a\\b:c\n", " é \U0001f600 "])
@pytest.mark.parametrize("client", ["c", "c.d", " c ", "'c'", "é\U0001f600"])
def test_changed_one_is_found_by_its_names(harness, client, name):
    subscription = Subscription(harness.topic(), name, f"{client}{uuid.uuid4().hex}{client}")
    left(harness, subscription, None)
    harness.send_messages(subscription.topic, one("old"))
    connection = harness.connect(subscription.client_id)
    consumer = connection.consumer(subscription, selector="n > 0")
    harness.send_messages(subscription.topic, one("new"))
    assert bodies(harness.gather(consumer, 1)) == ["new"]


@pytest.mark.parametrize("selectors", [("n = 1", None), (None, "n > 0"), ("n = 1", "n  = 1")])
def test_another_selector_replaces_it(harness, selectors):
    subscription = harness.subscription()
    left(harness, subscription, selectors[0])
    harness.send_messages(subscription.topic, one("old"))
    left(harness, subscription, selectors[1])
    harness.send_messages(subscription.topic, one("new"))
    connection = harness.connect(subscription.client_id)
    assert bodies(harness.gather(connection.consumer(subscription, selector=selectors[1]), 1)) == ["new"]


@pytest.mark.parametrize("selector", [None, "n = 1"])
def test_another_topic_replaces_it(harness, selector):
    subscription = harness.subscription()
    left(harness, subscription, selector)
    harness.send_messages(subscription.topic, one("old"))
    moved = replace(subscription, topic=harness.topic())
    left(harness, moved, selector)
    harness.send_messages(subscription.topic, one("old topic"))
    harness.send_messages(moved.topic, one("new"))
    connection = harness.connect(subscription.client_id)
    assert bodies(harness.gather(connection.consumer(moved, selector=selector), 1)) == ["new"]


def test_one_in_use_by_another_connection_is_not_replaced(harness):
    """Over STOMP the broker lets two connections with one client id consume from a subscription."""
    subscription = harness.subscription()
    first = harness.connect(subscription.client_id).consumer(subscription)
    harness.send_messages(subscription.topic, one("a"))
    second = harness.connect(subscription.client_id)
    for changed, selector in ((subscription, "n > 0"), (replace(subscription, topic=harness.topic()), None)):
        with pytest.raises(IllegalStateError, match="close its consumers"):
            second.consumer(changed, selector=selector)
    assert bodies(harness.gather(first, 1)) == ["a"]
    second.consumer(subscription)  # which shares it, and whose connection the refusal did not end


@pytest.mark.parametrize(("topic", "selector"), [("all::news", None), (None, "n = = 1"), (None, "JMSMessageID = 'a'")])
def test_consumer_that_is_refused_leaves_it_as_it_is(harness, topic, selector):
    subscription = harness.subscription()
    left(harness, subscription, None)
    harness.send_messages(subscription.topic, one("kept"))
    connection = harness.connect(subscription.client_id)
    changed = replace(subscription, topic=Topic(topic)) if topic else subscription
    with pytest.raises((InvalidDestinationError, InvalidSelectorError, NotSupportedError)):
        connection.consumer(changed, selector=selector)
    assert bodies(harness.gather(connection.consumer(subscription), 1)) == ["kept"]


def test_wrong_selector_leaves_it_as_it_is_on_activemq(broker_url):
    """The broker itself removes the subscription before it reads the selector."""
    harness = Harness(broker_url("activemq-stomp"))
    subscription = harness.subscription()
    left(harness, subscription, "n = 1")
    harness.send_messages(subscription.topic, one("kept"))
    connection = harness.connect(subscription.client_id)
    with pytest.raises(InvalidSelectorError):
        connection.consumer(subscription, selector="n = = 1")
    connection.close()
    connection = harness.connect(subscription.client_id)
    assert bodies(harness.gather(connection.consumer(subscription, selector="n = 1"), 1)) == ["kept"]
    harness.close()


def test_one_that_was_made_over_amqp_keeps_its_messages(harness, broker_url):
    """Its filter has no prefix, so it selects numbers of AMQP clients only."""
    subscription, url = harness.subscription(), broker_url("artemis-amqp")
    left(harness, subscription, "n = 1", url)
    over_amqp = harness.connect(url=url).unit()
    over_amqp.send(prepare(one("kept"), subscription.topic), subscription.topic)
    over_amqp.commit()
    connection = harness.connect(subscription.client_id)
    assert bodies(harness.gather(connection.consumer(subscription, selector="n = 1"), 1)) == ["kept"]


def test_user_without_the_permission_is_warned_and_refused_what_the_connection_knows(harness, caplog):
    url = f"{harness.url}?allow_insecure_login=true"
    subscription = harness.subscription()

    def limited():
        return connect(ConnectionSettings(url, "limited", "limited", client_id=subscription.client_id, limits=Limits()))

    connection = limited()
    connection.consumer(subscription, selector="n = 1").close()
    connection.consumer(subscription, selector="n = 1").close()
    assert [record.name for record in caplog.records if "'manage'" in record.getMessage()] == ["jmsjca.stomp"]
    harness.send_messages(subscription.topic, one("kept"))
    for changed, selector in ((subscription, None), (replace(subscription, topic=harness.topic()), "n = 1")):
        with pytest.raises(InvalidDestinationError, match="Remove it first"):
            connection.consumer(changed, selector=selector)
    assert bodies(harness.gather(connection.consumer(subscription, selector="n = 1"), 1)) == ["kept"]
    connection.close()


def test_nothing_of_a_question_is_left_at_the_broker(harness, broker_url):
    subscription = harness.subscription()
    left(harness, subscription, None)
    left(harness, subscription, "n = 1")
    admin = connect(ConnectionSettings(broker_url("artemis-amqp"))).admin()
    assert not {Topic("jmsjca.management"), Topic("activemq.management")} & set(admin.destinations())
