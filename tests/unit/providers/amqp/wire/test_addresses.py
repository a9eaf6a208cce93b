"""Names that a broker would misread are refused."""

import pytest
from amqp_peer import Broker
from amqp_peer.performatives import Attach, Error

from jmsjca.destinations import Queue, Subscription, Topic
from jmsjca.errors import InvalidDestinationError, TransactionRolledBackError
from jmsjca.providers.amqp.links.link_pool import MAX_SENDER_LINKS
from tests.unit.providers.amqp.wire.test_link_pool import RELAY, names_of, send_to

ARTEMIS, ACTIVEMQ, UNTESTED = "apache-activemq-artemis", "ActiveMQ", "unheard of"
ASK = {
    "consume": lambda connection, name: connection.consumer(Queue(name)),
    "subscribe": lambda connection, name: connection.consumer(Topic(name)),
    "durable": lambda connection, name: connection.consumer(Subscription(Topic(name), "s", "c")),
    "browse": lambda connection, name: list(connection.browse(Queue(name))),
    "send": lambda connection, name: connection.check(Queue(name)),
    "publish": lambda connection, name: connection.check(Topic(name)),
}


@pytest.mark.parametrize("product", [ARTEMIS, ACTIVEMQ, UNTESTED])
@pytest.mark.parametrize("name", ["q?x=1", "q?", "?q"])
@pytest.mark.parametrize("ask", ["consume", "send"])
def test_a_name_with_a_question_mark_is_refused_where_options_follow_it(stage, product, name, ask):
    connection = stage(Broker(product)).connect()
    with pytest.raises(InvalidDestinationError, match=r"q.* contains '\?': .*options.*choose another"):
        ASK[ask](connection, name)
    connection.check(Queue("q"))


READ = {
    ARTEMIS: ["a::b", "a.#", "*", "a.*.b", "#.b"],
    UNTESTED: ["a::b", "a.#"],
    ACTIVEMQ: ["a,b", "a.>", "*", "a.*.b", ">"],
}
BINDINGS = ["a.#", "*", "a.*.b", "#.b"]


NAMES = [(product, name) for product, names in READ.items() for name in names]


@pytest.mark.parametrize(("product", "name"), NAMES)
@pytest.mark.parametrize("ask", ["consume", "send", "publish"])
def test_a_name_is_refused_into_which_the_broker_would_read_something(stage, product, name, ask):
    with pytest.raises(InvalidDestinationError, match="use other destinations"):
        ASK[ask](stage(Broker(product)).connect(), name)


@pytest.mark.parametrize(("product", "name"), NAMES)
def test_a_topic_of_a_consumer_may_have_wildcards_and_no_other_syntax(stage, product, name):
    connection = stage(Broker(product)).connect()
    if "::" in name or "," in name:
        with pytest.raises(InvalidDestinationError, match="use other destinations"):
            ASK["subscribe"](connection, name)
    else:
        ASK["subscribe"](connection, name)


@pytest.mark.parametrize("product", ["Apache Qpid Broker-J Core", "RabbitMQ"])
@pytest.mark.parametrize("name", BINDINGS)
def test_only_topics_are_bound_by_wildcards(stage, product, name):
    connection = stage(Broker(product)).connect()
    for ask in ("consume", "send", "subscribe"):
        ASK[ask](connection, name)
    with pytest.raises(InvalidDestinationError, match="use other destinations"):
        ASK["publish"](connection, name)


@pytest.mark.parametrize("product", [ARTEMIS, ACTIVEMQ, "Apache Qpid Broker-J Core", "RabbitMQ"])
@pytest.mark.parametrize("name", ["a#b", "a*b", "c#", "*x.y", "a:b", "a.b", "a/*", "#/a"])
def test_what_is_only_like_a_wildcard_is_taken(stage, product, name):
    connection = stage(Broker(product)).connect()
    for ask in ("consume", "publish"):
        ASK[ask](connection, name)


@pytest.mark.parametrize("ask", ASK)
def test_it_is_refused_whatever_is_asked_for(stage, ask):
    broker = Broker(ARTEMIS, offers=("sole-connection-for-container",))
    with pytest.raises(InvalidDestinationError, match="options"):
        ASK[ask](stage(broker).connect(client_id="c"), "q?x=1")
    assert not broker.seen[Attach]


@pytest.mark.parametrize("product", ["Apache Qpid Broker-J Core", "RabbitMQ"])
@pytest.mark.parametrize("ask", ["consume", "send"])
def test_other_brokers_take_it(stage, product, ask):
    ASK[ask](stage(Broker(product)).connect(), "q?x=1")


def test_a_subscription_may_have_one_in_its_name(stage):
    stage(Broker(ARTEMIS)).connect(client_id="c").consumer(Subscription(Topic("t"), "s?x=1", "c"))


@pytest.mark.parametrize("client_id", ["c", None])
@pytest.mark.parametrize("volatile", [True, False])
def test_a_shared_subscription_has_no_name_that_would_be_cut(stage, client_id, volatile):
    broker = Broker(ARTEMIS, offers=("sole-connection-for-container", "SHARED-SUBS"))
    connection = stage(broker).connect(client_id="c")
    with pytest.raises(InvalidDestinationError, match=r"s\\x00other.* holds NUL"):
        connection.consumer(Subscription(Topic("t"), "s\0other", client_id, shared=True, volatile=volatile))
    assert not broker.seen[Attach]


@pytest.mark.parametrize(("name", "told"), [("q\0other", "holds NUL"), ("q?x=1", r"contains '\?'")])
def test_a_relay_is_given_no_name_that_no_consumer_can_have(stage, name, told):
    broker = Broker(offers=(RELAY,))
    connection = stage(broker).connect()
    send_to(connection, names_of(MAX_SENDER_LINKS + 1))
    with pytest.raises(TransactionRolledBackError, match=told):
        send_to(connection, [name])
    assert not any("other" in kept or "?" in kept for kept in broker.store.queues)


def test_a_selector_with_nul_is_said_whole(stage):
    """Proton counts the bytes of what stands in a filter."""
    asked, broker = [], Broker()

    def note(service, frame):
        asked.extend(each.value for each in frame.body.source.filter.values())
        service.carry_out(frame)

    broker.instead[Attach] = note
    stage(broker).connect().consumer(Queue("q"), selector="a = 'b\0c'")
    assert asked == ["a = 'b\0c'"]


@pytest.mark.parametrize(("ask", "kind"), [("consume", "queue"), ("subscribe", "topic"), ("browse", "queue")])
def test_what_artemis_has_as_the_other_kind_is_nobodys(stage, ask, kind):
    broker = Broker(ARTEMIS)
    _refuse(broker, f"Address x is not configured for {kind} support")
    connection = stage(broker).connect()
    with pytest.raises(InvalidDestinationError, match=f"x exists, but not as a {kind}; .*: Address x is not") as told:
        ASK[ask](connection, "x")
    assert "another client" not in str(told.value)


def test_what_is_in_use_is_still_told_so(stage):
    broker = Broker(ARTEMIS)
    _refuse(broker, "Consumer is exclusive, or whatever")
    text = "x is in use, or belongs to another client: amqp:illegal-state: Consumer"
    with pytest.raises(InvalidDestinationError, match=text):
        stage(broker).connect().consumer(Queue("x"))


def _refuse(broker, description):
    def refuse(service, frame):
        service.agree(frame, source=None)
        service.detach(frame, Error(condition="amqp:illegal-state", description=description))

    broker.instead[Attach] = refuse


@pytest.mark.parametrize("name", ["über", "日本"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda connection, name: connection.consumer(Queue(name)),
        lambda connection, name: connection.consumer(Topic(name)),
        lambda connection, name: connection.check(Queue(name)),
    ],
    ids=["consume", "topic", "send"],
)
def test_a_name_that_would_be_another_one_is_refused(stage, ask, name):
    connection = stage(Broker("RabbitMQ")).connect()
    with pytest.raises(InvalidDestinationError, match=f"{ascii(name)[1:-1]}.*ASCII".replace("\\", r"\\")):
        ask(connection, name)
    connection.check(Queue("uber"))


def test_other_brokers_take_them(stage):
    stage(Broker()).connect().check(Queue("über"))
