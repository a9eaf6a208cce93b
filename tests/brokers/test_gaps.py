"""What brokers do where they lack something over AMQP 1.0, by the protocol itself: each case is the evidence of a gap.

The gaps are told in the file of each broker in `jmsjca/providers/amqp`. Frames are printed: pytest shows them when one
is true no more.
"""

import shutil
import time
import uuid

import pytest
from brokers import configuration
from gap_links import Receiver, end_over_a_sender, send
from proton import Delivery, Described, Endpoint, Message, Terminus, symbol
from proton.utils import LinkDetached

HOUR = 3_600_000
DUE = symbol("x-opt-delivery-time")
GIVEN_BACK = [Delivery.RELEASED, Delivery.MODIFIED]
ATTEMPTS = 5000
RABBITMQ = ["rabbitmq", "rabbitmq4"]


def browse(link):
    link.source.distribution_mode = Terminus.DIST_MODE_COPY


def give_back(connection, delivery, state):
    delivery.local.failed = state == Delivery.MODIFIED
    delivery.update(state)
    delivery.settle()
    send(connection, f"{_prefix(connection)}flush.{uuid.uuid4().hex}", "what was written before is there by now")


def _prefix(connection):
    return "/queue/" if connection.connection.conn.remote_properties["product"] == "RabbitMQ" else ""


def test_artemis_does_not_always_count_what_a_broken_connection_held(amqp, wire, address):
    through, name = wire("artemis"), address("artemis")
    send(amqp("artemis"), name, "a")
    for broken in range(100):
        found = Receiver(amqp("artemis", through.url), name, 1).take()[0].delivery_count
        through.cut()
        if found < broken:
            return
    pytest.fail("It counted all of a hundred times.")


def test_artemis_shows_a_browser_the_count_of_the_latest_delivery(amqp, address):
    connection, name = amqp("artemis"), address("artemis")
    send(connection, name, "a")
    shown, counted = [Receiver(connection, name, 1, browse).take()[0].delivery_count], []
    for _ in range(2):
        receiver = Receiver(connection, name, 1)
        message, delivery = receiver.take()
        counted.append(message.delivery_count)
        give_back(connection, delivery, Delivery.MODIFIED)
        receiver.link.close()
        shown.append(Receiver(connection, name, 1, browse).take()[0].delivery_count)
    assert (counted, shown) == ([0, 1], [0, 0, 1])


@pytest.mark.parametrize("state", GIVEN_BACK)
def test_activemq_gives_what_goes_back_to_the_same_link_again(amqp, address, state):
    connection, name = amqp("activemq"), address("activemq")
    send(connection, name, "a", "b")
    receiver = Receiver(connection, name, 3)
    _, delivery = receiver.take()
    assert receiver.bodies(1) == ["b"]
    give_back(connection, delivery, state)
    assert receiver.bodies(1) == ["a"]  # behind b


@pytest.mark.parametrize("state", GIVEN_BACK)
def test_activemq_keeps_from_others_what_goes_back_until_its_link_is_detached(amqp, address, state):
    """Nor does it count it."""
    one, other, name = amqp("activemq"), amqp("activemq"), address("activemq")
    send(one, name, "a")
    receiver = Receiver(one, name, 1)
    give_back(one, receiver.take()[1], state)
    waiting = Receiver(other, name, 2)
    send(one, name, "b")
    assert waiting.bodies(1) == ["b"]
    receiver.link.close()
    one.connection.wait(lambda: receiver.link.state & Endpoint.REMOTE_CLOSED, msg="a detach")
    message, _ = waiting.take()
    assert (message.body, message.delivery_count) == ("a", 0)


def test_activemq_counts_what_a_broken_connection_held_looked_at_or_not(amqp, wire, address):
    through, name = wire("activemq"), address("activemq")
    send(amqp("activemq"), name, "a", "b")
    Receiver(amqp("activemq", through.url), name, 2).take()
    through.cut()
    receiver = Receiver(amqp("activemq"), name, 2)
    assert [(m.body, m.delivery_count) for m in (receiver.take()[0], receiver.take()[0])] == [("a", 1), ("b", 1)]


@pytest.mark.torture  # on some machines they cross at once, and on some hardly ever
def test_activemq_may_keep_a_message_for_a_link_whose_drain_crosses_one(amqp):
    one, other = amqp("activemq"), amqp("activemq")
    for _ in range(ATTEMPTS):
        name = f"gap.{uuid.uuid4().hex}"
        send(one, name, "a", "b", "c")
        receiver = Receiver(one, name, 2)
        receiver.take()
        receiver.link.drain(0)  # "b" may be under way
        assert receiver.bodies(1) == ["b"]
        send(one, f"flush.{name}", "the drain is there by now")
        waiting = Receiver(other, name, 1)
        send(one, name, "d")
        if waiting.bodies(1) == ["d"]:
            receiver.link.drain_mode = False
            receiver.link.flow(1)
            assert receiver.bodies(1) == ["c"]
            return
        receiver.session.close()
        waiting.session.close()
    pytest.fail(f"It kept none of {ATTEMPTS} times.")


def due(body):
    return Message(body=body, durable=True, annotations={DUE: round(time.time() * 1000) + HOUR})


@pytest.fixture
def without_scheduler(broker_url, own_broker, monkeypatch, tmp_path):
    """The URL of an ActiveMQ of the test's own, which has no scheduler."""
    broker_url("activemq-amqp")  # started before the configuration changes
    shutil.copytree(configuration.CONF, tmp_path / "conf")
    file = tmp_path / "conf" / "activemq" / "activemq.xml"
    file.write_text(file.read_text().replace('schedulerSupport="true"', ""))
    monkeypatch.setattr(configuration, "CONF", tmp_path / "conf")
    return own_broker("activemq").url("amqp")


def test_activemq_holds_what_is_due_later_only_with_its_scheduler_and_does_not_tell(amqp, address, without_scheduler):
    name, with_scheduler, by_default = address("activemq"), amqp("activemq"), amqp("activemq", without_scheduler)
    for connection, comes in ((with_scheduler, "now"), (by_default, "later")):
        send(connection, name, due("later"), "now")
        assert Receiver(connection, name, 1).bodies(1) == [comes]
    offers = [str(c.connection.conn.remote_offered_capabilities) for c in (with_scheduler, by_default)]
    assert offers[0] == offers[1]


@pytest.mark.parametrize("broker", RABBITMQ)
def test_rabbitmq_delivers_at_once_what_is_due_later(amqp, address, broker):
    connection, name = amqp(broker), address(broker)
    send(connection, name, due("later"))
    assert Receiver(connection, name, 1).bodies(1) == ["later"]


def test_qpid_refuses_what_is_due_later(amqp, address):
    sender = amqp("qpid").connection.create_sender(address("qpid"))
    with pytest.raises(LinkDetached, match=r"amqp:precondition-failed.*Not accepted by queue"):
        sender.send(due("later"))


@pytest.mark.parametrize("broker", ["activemq", "qpid", "rabbitmq"])
def test_messages_come_in_the_order_of_sending_whatever_their_priority(amqp, address, broker):
    connection, name = amqp(broker), address(broker)
    send(connection, name, *(Message(body=p, priority=p, durable=True) for p in (1, 9, 5)))
    assert Receiver(connection, name, 3).bodies(3) == [1, 9, 5]


@pytest.mark.parametrize("broker", ["activemq", "qpid", "rabbitmq", "rabbitmq4"])
def test_both_are_delivered_that_have_the_same_duplicate_id(amqp, address, broker):
    connection, name = amqp(broker), address(broker)
    properties = {"_AMQ_DUPL_ID": uuid.uuid4().hex}
    send(connection, name, *(Message(body=b, properties=properties, durable=True) for b in "ab"))
    assert Receiver(connection, name, 2).bodies(2) == ["a", "b"]


def test_qpid_attaches_a_sender_that_may_not_send(amqp):
    sender = amqp("qpid").connection.create_sender("refused.queue")
    assert sender.link.remote_target.address == "refused.queue"
    with pytest.raises(LinkDetached, match="amqp:not-allowed"):
        sender.send(Message(body="x"))


@pytest.mark.parametrize("looked_at", [True, False])
def test_rabbitmq_gives_what_was_released_to_others_as_if_it_had_been_tried(amqp, address, looked_at):
    one, other, name = amqp("rabbitmq"), amqp("rabbitmq"), address("rabbitmq")
    send(one, name, "a", "b")
    receiver = Receiver(one, name, 2)
    deliveries = [receiver.take()[1] for _ in "ab"]
    give_back(one, deliveries[not looked_at], Delivery.RELEASED)
    message, _ = Receiver(other, name, 1).take()
    assert (message.body, message.first_acquirer, message.delivery_count) == ("ba"[looked_at], False, 0)


def test_rabbitmq_ends_the_session_that_modifies(amqp, address):
    connection, name = amqp("rabbitmq"), address("rabbitmq")
    send(connection, name, "a")
    receiver = Receiver(connection, name, 1)
    _, delivery = receiver.take()
    delivery.local.failed = True
    delivery.update(Delivery.MODIFIED)
    delivery.settle()
    condition = receiver.end()
    assert condition.name == "amqp:invalid-field"
    assert "Unrecognised state" in condition.description


def test_rabbitmq_ends_the_session_that_drains(amqp, address):
    receiver = Receiver(amqp("rabbitmq"), address("rabbitmq"), 0)
    receiver.link.drain(1)
    condition = receiver.end()
    assert condition.name == "amqp:internal-error"
    assert "function_clause" in condition.description
    assert "send_drained" in condition.description


def select(selector):
    described = Described(symbol("apache.org:selector-filter:string"), selector)
    return lambda link: link.source.filter.put_object({symbol("jms-selector"): described})


def test_qpid_takes_what_is_missing_for_different(amqp, address):
    connection, name = amqp("qpid"), address("qpid")
    send(connection, name, *(Message(body=b, properties=p) for b, p in (("a", {"colour": "red"}), ("b", {}))))
    assert Receiver(connection, name, 1, select("colour <> 'red'")).bodies(1) == ["b"]


@pytest.mark.parametrize("broker", RABBITMQ)
def test_rabbitmq_repeats_a_filter_and_delivers_everything(amqp, address, broker):
    connection, name = amqp(broker), address(broker)
    send(connection, name, "a")
    receiver = Receiver(connection, name, 1, select("colour = 'red'"))
    assert receiver.link.remote_source.filter.next()  # as if it were heeded
    assert receiver.bodies(1) == ["a"]


@pytest.mark.parametrize("broker", RABBITMQ)
def test_rabbitmq_takes_what_was_to_be_looked_at(amqp, address, broker):
    connection, name = amqp(broker), address(broker)
    send(connection, name, "a")
    receiver = Receiver(connection, name, 1, browse)
    assert receiver.link.remote_source.distribution_mode == Terminus.DIST_MODE_COPY
    assert receiver.bodies(1) == ["a"]
    send(connection, name, "b")
    assert Receiver(amqp(broker), name, 1).bodies(1) == ["b"]


@pytest.mark.parametrize("broker", RABBITMQ)
def test_rabbitmq_lets_two_connections_have_one_container_id(amqp, address, broker):
    alone, client = symbol("sole-connection-for-container"), uuid.uuid4().hex
    first, _ = (amqp(broker, container_id=client, desired_capabilities=[alone]) for _ in range(2))
    send(first, address(broker), "a")
    assert Receiver(first, address(broker), 1).bodies(1) == ["a"]


def test_rabbitmq_forgets_a_subscription_that_is_detached(amqp, address):
    connection, name = amqp("rabbitmq"), address("rabbitmq").replace("/queue/", "/topic/")

    def last(link):
        link.source.durability = Terminus.DELIVERIES
        link.source.expiry_policy = Terminus.EXPIRE_NEVER

    receiver = Receiver(connection, name, 1, last, "lasting")
    assert receiver.link.remote_source.durability == Terminus.DELIVERIES
    receiver.link.detach()
    connection.connection.close()
    connection = amqp("rabbitmq")
    sender = connection.connection.create_sender(name)
    sender.send(Message(body="lost"))
    receiver = Receiver(connection, name, 1, last, "lasting")
    sender.send(Message(body="kept"))
    assert receiver.bodies(1) == ["kept"]


def test_activemq_keeps_a_question_for_its_statistics_as_any_message(amqp):
    connection, name = amqp("activemq"), "ActiveMQ.Statistics.Broker"
    send(connection, name, Message(body="", reply_to=f"answers.{uuid.uuid4().hex}", durable=True))
    assert Receiver(connection, name, 1).bodies(1) == [""]


def test_rabbitmq_has_no_address_for_its_management(amqp):
    why = end_over_a_sender(amqp("rabbitmq"), lambda target: setattr(target, "address", "/management"))
    assert why.name == "amqp:invalid-field"
    assert "unknown_destination" in why.description


def test_artemis_counts_no_failure_of_a_large_message(amqp, address):
    connection, name = amqp("artemis"), address("artemis")
    send(connection, name, "x" * 200_000)
    receiver = Receiver(connection, name, 2)
    _, delivery = receiver.take()
    give_back(connection, delivery, Delivery.MODIFIED)
    assert receiver.take()[0].delivery_count == 0
