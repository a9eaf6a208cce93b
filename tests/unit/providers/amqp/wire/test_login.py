"""The login, frame by frame, and the meaning of each refusal."""

import pytest
from amqp_peer import SECONDS
from amqp_peer.encoding import Symbol
from amqp_peer.frames import AMQP, SASL
from amqp_peer.performatives import Attach, Close, Error, Init, Mechanisms, Open, Outcome
from amqp_peer.script import LOGIN, OPEN, drop, expect, offer, reply, script, send, silence

from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, InvalidClientIDError, JMSSecurityError, WrongProtocolError
from jmsjca.reconnection import is_transient

USER = {"user_name": "joe", "password": "hu:sh@1"}
CLEAR = "allow_insecure_login=true"


def sent(stage):
    """All that the provider wrote, as text."""
    return "\n".join(line for each in stage.peer.lines for line in each.log if line.startswith("→"))


def test_the_frames_of_a_login_with_a_password(stage):
    """RFC 4616: an empty authorization, the user and the password, divided by NUL."""
    init = expect(Init(mechanism=Symbol("PLAIN"), initial_response=b"\0joe\0hu:sh@1"))
    steps = (offer("EXTERNAL", "PLAIN", "ANONYMOUS"), init, reply(), expect(AMQP), send(AMQP), expect(Open), reply())
    stage(script(steps)).connect(CLEAR, **USER)


def test_the_frames_of_a_login_without_one(stage):
    init = expect(Init(mechanism=Symbol("ANONYMOUS")))
    steps = (offer("PLAIN", "ANONYMOUS"), init, reply(), expect(AMQP), send(AMQP), expect(Open), reply())
    stage(script(steps)).connect()


@pytest.mark.parametrize(
    "offered", [(), ("ANONYMOUS",), ("EXTERNAL",), ("SCRAM-SHA-256", "ANONYMOUS"), ("GSSAPI", "EXTERNAL"), ("plain",)]
)
def test_a_password_is_traded_for_no_other_login(stage, offered):
    here = stage(script(offer(*offered), expect("no login")))
    with pytest.raises(JMSSecurityError):
        here.connect(CLEAR, **USER)
    assert "Init" not in sent(here)


@pytest.mark.parametrize("offered", [(), ("PLAIN",), ("EXTERNAL",), ("SCRAM-SHA-256",)])
def test_no_login_is_made_up(stage, offered):
    here = stage(script(offer(*offered), expect("no login")))
    with pytest.raises(JMSSecurityError):
        here.connect()
    assert "Init" not in sent(here)


@pytest.mark.parametrize("code", [1, 2, 3])
def test_a_login_that_is_refused_is_not_tried_again(stage, code):
    here = stage(script(offer("PLAIN"), expect(Init), reply(code=code), drop))
    with pytest.raises(JMSSecurityError) as told:
        here.connect(CLEAR, **USER)
    assert not is_transient(told.value)


def test_a_login_that_cannot_be_judged_now_may_pass(stage):
    """Outcome 4, sys-temp (AMQP 1.0, section 5.3.3.6): the broker's directory is away, say."""
    here = stage(script(offer("PLAIN"), expect(Init), reply(code=4), drop))
    with pytest.raises(ConnectionLostError, match="login") as told:
        here.connect(CLEAR, **USER)
    assert is_transient(told.value)


ANSWERS = {
    "AMQP instead of SASL": (expect(SASL), send(AMQP)),
    "AMQP instead of mechanisms": (expect(SASL), send(SASL, AMQP)),
    "open instead of mechanisms": (expect(SASL), send(SASL, Open(container_id="peer"))),
    "SASL again": (expect(SASL), send(SASL, SASL)),
    "SASL instead of AMQP": (offer("ANONYMOUS"), expect(Init), reply(), expect(AMQP), send(SASL)),
    "AMQP 1.1": (offer("ANONYMOUS"), expect(Init), reply(), expect(AMQP), send(b"AMQP\0\1\1\0")),
    "mechanisms after the login": (LOGIN, expect(Open), send(Mechanisms(offered=[Symbol("PLAIN")])), drop),
    "zeros": (expect(SASL), send(bytes(100))),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_what_is_no_login_ends_the_attempt(stage, answer):
    here = stage(script(ANSWERS[answer], drop))
    with pytest.raises((ConnectionLostError, JMSSecurityError)):
        here.connect()


OTHER_PROTOCOLS = {
    "AMQP 0-9-1": b"AMQP\0\0\x09\x01",
    "HTTP": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "TLS": b"\x15\x03\x01\x00\x02\x02\x46",
    "STOMP": b"ERROR\nmessage:Unknown\n\n\0",
}


@pytest.mark.parametrize("protocol", OTHER_PROTOCOLS)
def test_the_greeting_of_another_protocol_is_told_by_its_name(stage, protocol):
    here = stage(script(expect(SASL), send(OTHER_PROTOCOLS[protocol]), drop))
    with pytest.raises(WrongProtocolError, match=f"speaks {protocol}, not AMQP 1.0"):
        here.connect()


@pytest.mark.parametrize("login", [(offer("ANONYMOUS"), expect(Init)), (expect(SASL), send(SASL))])
def test_a_connection_that_is_opened_in_the_midst_of_the_login_is_left(stage, login):
    """Proton takes it for logged in."""
    here = stage(script(login, send(Open(container_id="peer")), silence))
    with pytest.raises(ConnectionLostError, match="before it answered the login"):
        here.connect()


@pytest.mark.parametrize("user", [USER, {}], ids=["with a password", "anonymous"])
def test_an_outcome_before_any_login_is_refused(stage, user):
    """Proton takes it for a login, and would go on without one."""
    outcome = (expect(SASL), send(SASL, Outcome(code=0)))
    here = stage(script(outcome, send(AMQP), send(Open(container_id="peer")), silence))
    with pytest.raises(ConnectionLostError, match="before it answered the login"):
        here.connect(CLEAR, **user)


SILENT = {
    "before anything": silence,
    "after the greeting": (expect(SASL), silence),
    "before the mechanisms": (expect(SASL), send(SASL), silence),
    "before the outcome": (offer("ANONYMOUS"), expect(Init), silence),
    "before the greeting of AMQP": (offer("ANONYMOUS"), expect(Init), reply(), expect(AMQP), silence),
    "before the open": (LOGIN, expect(Open), silence),
}


@pytest.mark.parametrize("when", SILENT)
def test_a_peer_that_falls_silent_is_given_up(stage, impatient, when):
    here = stage(script(SILENT[when]))
    impatient(here.peer)
    with pytest.raises(ConnectionLostError, match="did not answer within"):
        here.connect()


CLOSES = {
    "amqp:unauthorized-access": JMSSecurityError,
    "amqp:connection:forced": ConnectionLostError,
    "amqp:connection:redirect": ConnectionLostError,
    "amqp:not-found": ConnectionLostError,
    "amqp:resource-limit-exceeded": ConnectionLostError,
    "amqp:internal-error": ConnectionLostError,
    "vendor:own": ConnectionLostError,
}
FAILED = {Symbol("amqp:connection-establishment-failed"): True}


def closing(condition):
    """A close that names a place to go to instead."""
    info = {Symbol("hostname"): "evil", Symbol("network-host"): "127.0.0.1", Symbol("port"): 1}
    return Close(error=Error(condition=condition, description="because", info=info))


def reason(condition):
    return "another host.*evil" if condition.endswith("redirect") else f"{condition}: because"


@pytest.mark.parametrize("condition", CLOSES)
def test_an_open_that_fails_says_why(stage, condition):
    refusal = (reply(properties=FAILED), send(closing(condition)), expect(Close), drop)
    here = stage(script(LOGIN, expect(Open), refusal))
    with pytest.raises(CLOSES[condition], match=reason(condition)):
        here.connect()
    assert len(here.peer.lines) == 1  # no redirect is followed


@pytest.mark.parametrize("condition", CLOSES)
def test_a_close_later_says_why(stage, condition):
    here = stage(script(OPEN, expect(Attach), send(closing(condition)), expect(Close), drop))
    here.connect()
    with pytest.raises(CLOSES[condition], match=reason(condition)):
        here.connections[0].consumer(Queue("q"))
    assert here.lost.wait(SECONDS)
    assert type(here.told[0]) is CLOSES[condition]


def test_a_client_id_that_is_taken(stage):
    error = Error(condition="amqp:invalid-field", info={Symbol("invalid-field"): Symbol("container-id")})
    refusal = (reply(properties=FAILED), send(Close(error=error)), drop)
    here = stage(script(LOGIN, expect(Open(container_id="me")), refusal))
    with pytest.raises(InvalidClientIDError):
        here.connect(client_id="me")
