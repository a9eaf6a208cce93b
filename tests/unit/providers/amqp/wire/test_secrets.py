"""Passwords are used for the login and shown nowhere."""

import base64
import logging
import math
from contextlib import suppress
from dataclasses import fields
from urllib.parse import quote

import pytest
from amqp_peer import SECONDS, Broker, Peer
from amqp_peer.frames import AMQP
from amqp_peer.performatives import Attach, Begin, Close, Error, Flow, Init, Open
from amqp_peer.script import drop, expect, offer, reply, reset, script, send
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jmsjca.config import ConnectionURL, Limits
from jmsjca.destinations import Queue
from jmsjca.errors import JMSError
from jmsjca.messages import TextMessage
from jmsjca.outbound import ConnectionFactory
from jmsjca.providers.common.network import NetworkOptions
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.providers.amqp.wire.cut_account import encoded

LOGIN = (offer("PLAIN"), expect(Init), reply(), expect(AMQP), send(AMQP))
FORCED = Close(error=Error(condition="amqp:connection:forced", description="over"))
FATES = {
    "ends before the login": (offer("PLAIN"), drop),
    "offers another login": offer("ANONYMOUS"),
    "refuses the login": (offer("PLAIN"), expect(Init), reply(code=1), drop),
    "cannot judge the login": (offer("PLAIN"), expect(Init), reply(code=4), drop),
    "resets in the login": (offer("PLAIN"), expect(Init), reset),
    "is no broker": (offer("PLAIN"), expect(Init), send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), drop),
    "refuses the opening": (LOGIN, expect(Open), reply(), send(FORCED), drop),
    "ends later": (LOGIN, expect(Open), reply(), expect(Begin), send(FORCED), drop),
    "resets later": (LOGIN, expect(Open), reply(), expect(Attach), reset),
}
# Long enough to be found by chance nowhere.
SECRETS = st.builds("Xq7-{}-zW9".format, st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0")))


def use(url, seen, **login):
    """Connect, consume and send, as far as that goes; notes everything that anybody might show."""
    given = ConnectionSettings(url, **login)
    factory = ConnectionFactory(connection_url=url, **login)
    seen += [given, factory, ConnectionURL.parse(url)]
    connection = None
    try:
        connection = connect(given, seen.append)
        seen.append(connection)
        connection.consumer(Queue("in"))
        unit = connection.unit()
        unit.send(TextMessage("x"), Queue("out"))
        unit.commit()
    except JMSError as error:
        seen.append(error)
    finally:
        if connection is not None:
            connection.close()


def shown(things):
    """All that these things show of themselves, their causes among it."""
    for thing in things:
        yield from (str(thing), repr(thing))
        if isinstance(thing, BaseException):
            yield repr(thing.args)
            yield from shown(inner for inner in (thing.__cause__, thing.__context__) if inner is not None)


def forms(secret):
    """The secret as it is, and as it may be written."""
    raw = secret.encode()
    return {secret, quote(secret, safe=""), quote(secret), base64.b64encode(raw).decode(), repr(secret)[1:-1], str(raw)}


def assert_unseen(secret, seen, caplog):
    texts = [*shown(seen), caplog.text, *(repr(record.__dict__) for record in caplog.records)]
    assert not [text for text in texts for form in forms(secret) if form in text]


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("place", ["in the URL", "beside it"])
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(secret=SECRETS)
def test_a_password_is_shown_by_nothing(caplog, fate, place, secret):
    caplog.set_level(logging.DEBUG)
    caplog.clear()
    peer, seen = Peer(script(FATES[fate])), []
    login = {"user_name": "joe", "password": secret} if place == "beside it" else {}
    user = "" if login else f"joe:{quote(secret, safe='')}@"
    try:
        use(f"amqp://{user}{peer.address}?allow_insecure_login=true", seen, **login)
    finally:
        with suppress(AssertionError):  # the script may not be at its end
            peer.close()
    assert_unseen(secret, seen, caplog)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(secret=SECRETS)
def test_a_password_reaches_the_broker_and_nobody_else(caplog, secret):
    caplog.set_level(logging.DEBUG)
    caplog.clear()
    peer, seen = Peer(Broker(mechanisms=("PLAIN",))), []
    use(f"amqp://joe:{quote(secret, safe='')}@{peer.address}?allow_insecure_login=true", seen)
    peer.close()
    inits = [frame.body for frame in peer.lines[0].frames if isinstance(frame.body, Init)]
    assert [init.initial_response for init in inits] == [f"\0joe\0{secret}".encode()]
    assert_unseen(secret, seen, caplog)


def test_the_text_of_a_secret_would_be_found(caplog):
    """The check itself can fail."""
    error = JMSError("outside")
    error.__cause__ = ValueError("amqp://joe:Xq7-%20-zW9@host")
    with pytest.raises(AssertionError):
        assert_unseen("Xq7- -zW9", [error], caplog)
    logging.getLogger("proton").warning("%s", b"Xq7-\xc3\xbc-zW9")
    with pytest.raises(AssertionError):
        assert_unseen("Xq7-ü-zW9", [], caplog)


@pytest.mark.parametrize("bounds", [Limits, NetworkOptions])
def test_every_bound_is_finite_by_default(bounds):
    numbers = {f.name: f.default for f in fields(bounds) if f.type in {int, float, "int", "float"}}
    assert numbers
    assert all(0 < number < math.inf for number in numbers.values()), numbers


def test_the_bounds_are_told_to_the_broker():
    broker = Broker()
    broker.store.put("in", encoded("x"))
    peer = Peer(broker)
    connection = connect(ConnectionSettings(f"amqp://{peer.address}"))
    assert connection.consumer(Queue("in")).receive(1, SECONDS)
    connection.close()
    peer.close()
    opened = next(f.body for f in peer.lines[0].frames if isinstance(f.body, Open))
    assert opened.max_frame_size <= 1024 * 1024
    assert 0 < opened.idle_time_out <= 60_000
    flows = [f.body for f in peer.lines[0].frames if isinstance(f.body, Flow)]
    assert max(flow.link_credit or 0 for flow in flows) <= Limits().prefetch_messages
    attached = next(f.body for f in peer.lines[0].frames if isinstance(f.body, Attach))
    assert attached.max_message_size == Limits().message_bytes
