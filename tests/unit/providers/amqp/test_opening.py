"""Opening a connection: refusals, missing replies, and the broker's profile."""

import socket

import pytest
from proton import Condition, symbol

from jmsjca.destinations import Subscription, Topic
from jmsjca.errors import (
    ConnectionLostError,
    InvalidClientIDError,
    InvalidOptionError,
    InvalidURLError,
    JMSSecurityError,
    NotSupportedError,
)
from jmsjca.providers.amqp.provider import profile_for
from jmsjca.reconnection import ConnectionSettings, connect

LOGIN = "allow_insecure_login=true"


def test_an_orderly_life(line):
    line = line()
    line.open().close()
    assert line.peer.order == ["connect", "login", "open", "close"]
    assert not line.told


@pytest.mark.parametrize("step", ["connect", "login", "open"])
def test_a_broker_that_falls_silent_is_given_up(line, impatient, step):
    line = line()
    impatient(line.peer)
    line.peer.silent(step)
    with pytest.raises(ConnectionLostError, match="did not answer"):
        line.open()
    assert not line.told  # what never was is not lost; that its thread ends is seen to by the fixture


@pytest.mark.parametrize("step", ["connect", "login", "open"])
def test_a_broker_that_hangs_up(line, step):
    line = line()
    line.peer.reactions[step] = line.peer.cut
    with pytest.raises(ConnectionLostError):
        line.open()


@pytest.mark.parametrize("outcome", [1, 2, 3])
def test_login_refused(line, outcome):
    line = line(offers="PLAIN", login=outcome)
    with pytest.raises(JMSSecurityError):
        line.open(LOGIN, "user:hush@")


def test_a_login_that_cannot_be_checked_for_now(line):
    """The password may be right: the outcome sys-temp may pass."""
    line = line(offers="PLAIN", login=4)
    with pytest.raises(ConnectionLostError, match="for now"):
        line.open(LOGIN, "user:hush@")


def test_a_password_is_never_traded_for_an_anonymous_login(line):
    line = line(offers="ANONYMOUS")
    with pytest.raises(JMSSecurityError):
        line.open(LOGIN, "user:hush@")
    assert b"ANONYMOUS" not in line.peer.login
    assert "open" not in line.peer.seen


def test_no_login_is_made_up(line):
    line = line(offers="PLAIN")
    with pytest.raises(JMSSecurityError):
        line.open()
    assert "open" not in line.peer.seen


def test_the_login_is_what_was_given(line):
    line = line(offers="PLAIN")
    line.open(LOGIN, "us%3Aer:hu%40sh@")
    assert b"\0us:er\0hu@sh" in line.peer.login


@pytest.mark.parametrize(
    ("condition", "error"),
    [
        ("amqp:unauthorized-access", JMSSecurityError),
        ("amqp:connection:forced", ConnectionLostError),
        ("amqp:resource-limit-exceeded", ConnectionLostError),
        ("amqp:not-found", ConnectionLostError),
        ("amqp:internal-error", ConnectionLostError),
        ("amqp:invalid-field", ConnectionLostError),
    ],
)
def test_opening_refused(line, condition, error):
    line = line()
    properties = {"amqp:connection-establishment-failed": True}
    line.peer.reactions["open"] = lambda event: _fail_open(line.peer, event, condition, properties)
    with pytest.raises(error, match="over"):
        line.open()


def test_a_redirect_is_told_and_not_followed(line):
    """Whoever stands behind the name was not chosen by the user, and would get the password."""
    line = line()
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.settimeout(0)
        info = {symbol("network-host"): "127.0.0.1", symbol("port"): elsewhere.getsockname()[1]}
        line.peer.reactions["open"] = lambda event: _close(line.peer, Condition("amqp:connection:redirect", "go", info))
        with pytest.raises(ConnectionLostError, match=r"another host.*network-host.*127\.0\.0\.1.*port.*\d+"):
            line.open()
        with pytest.raises(BlockingIOError):
            elsewhere.accept()


def test_a_client_id_that_is_taken(line):
    line = line()
    line.peer.reactions["open"] = lambda event: _fail_open(
        line.peer, event, "amqp:invalid-field", {"amqp:connection-establishment-failed": True}, "container-id"
    )
    with pytest.raises(InvalidClientIDError):
        line.open()


def _fail_open(peer, event, condition, properties, info=None):
    """As brokers do it: an open that says so, then a close that says why."""
    peer.connection.properties = {symbol(name): value for name, value in properties.items()}
    details = {symbol("invalid-field"): symbol(info)} if info else None
    _close(peer, Condition(condition, "over", details))


def _close(peer, condition):
    peer.connection.open()
    peer.connection.condition = condition
    peer.connection.close()


@pytest.mark.parametrize("volatile", [True, False])
def test_a_shared_subscription_is_refused(line, volatile):
    """Each consumer would get a copy of everything."""
    shared = Subscription(Topic("t"), "s", "id", shared=True, volatile=volatile)
    with pytest.raises(NotSupportedError, match="capability shared"):
        line("ActiveMQ").open().consumer(shared)


@pytest.mark.parametrize("path", ["/", "/queue"])
def test_a_path_is_refused(path):
    with pytest.raises(InvalidURLError if path != "/" else ConnectionLostError):
        connect(ConnectionSettings(f"amqp://127.0.0.1:1{path}"))


ARTEMIS, BROKER_J = "apache-activemq-artemis", "Apache Qpid Broker-J Core"
ALONE, DELAYS, SHARES = "sole-connection-for-container", "DELAYED_DELIVERY", "SHARED-SUBS"


def can(product, *offered):
    return profile_for(product, "", set(offered)).capabilities


@pytest.mark.parametrize(
    ("product", "capability", "offer"),
    [
        (ARTEMIS, "client_ids", ALONE),
        (ARTEMIS, "delivery_delay", DELAYS),
        (ARTEMIS, "shared", SHARES),
        (BROKER_J, "client_ids", ALONE),
        (BROKER_J, "shared", SHARES),
        ("unheard of", "client_ids", ALONE),
    ],
)
def test_what_is_not_offered_is_not_there(product, capability, offer):
    others = {ALONE, DELAYS, SHARES} - {offer}
    assert getattr(can(product, offer, *others), capability)
    assert not getattr(can(product, *others), capability)


def test_what_is_offered_in_vain_is_not_trusted():
    assert not can("ActiveMQ", DELAYS).delivery_delay
    assert can("unheard of", DELAYS, SHARES, "ANONYMOUS-RELAY") == can("unheard of")


def test_a_broker_that_nobody_tested_is_not_trusted_with_a_unit():
    unknown = can("unheard of", ALONE)
    trusted = (unknown.atomic, unknown.transacted_receive, unknown.transacted_send, unknown.selectors)
    assert not any(trusted)


@pytest.mark.parametrize(
    ("version", "release"),
    [("3.10.8", "3.10.8"), ("", "3.10.8"), ("nonsense", "3.10.8"), ("4.0.5", "4.0.5"), ("5.1", "4.0.5")],
)
def test_rabbitmq_is_told_by_its_version(version, release):
    assert profile_for("RabbitMQ", version, RELAY).release == release


@pytest.mark.parametrize("version", ["3.10.8", "4.0.5", ""])
def test_another_product_is_told_without_its_version(version):
    assert profile_for(ARTEMIS, version, set()).product == ARTEMIS


def test_classic_queues_have_priorities_and_count_nothing():
    quorum, classic = (
        profile_for("RabbitMQ", "4.0.5", RELAY, queue_type=kind).capabilities for kind in ("quorum", "classic")
    )
    assert (quorum.priority, quorum.delivery_count, quorum.give_back) == (False, True, "uncounted")
    assert (classic.priority, classic.delivery_count, classic.give_back) == (True, False, "local")


def test_an_unknown_type_of_queue_is_refused():
    with pytest.raises(InvalidOptionError, match="queue_type is quorum or classic, not 'stream'"):
        connect(ConnectionSettings("amqp://127.0.0.1:1?queue_type=stream"))


RELAY = {"ANONYMOUS-RELAY", "LINK_PAIR_V1_0"}
