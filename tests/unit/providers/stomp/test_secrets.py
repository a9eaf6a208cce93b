"""A password appears in the login and nowhere else."""

import logging
from base64 import b64encode
from urllib.parse import quote

import pytest

from jmsjca.destinations import Queue
from jmsjca.errors import JMSError
from jmsjca.messages import TextMessage
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.providers.stomp.broker import Fault, Peer

SECRETS = [
    *("hush-4711", "hu sh 4711", 'hu"sh4711', "hu'sh4711", "hu%sh4711", "hu%20sh4711", "hu:sh4711", "hu@sh4711"),
    *("hu/sh4711", "hu\\nsh4711", "hu\\sh4711", "hüsh4711", "hu,sh4711", "hu;sh4711", "hu&sh=4711", "hu#sh4711"),
    *("hu?sh4711", "{hush4711}", "%s-hush-4711", "$hush4711", "hu\tsh4711", "\U0001f600hush4711"),
]
PLACES = [None, *(Fault(kind, place) for kind in ("cut", "refuse", "noise") for place in (0, 1, 3, 5, 7, 9))]


@pytest.mark.parametrize("secret", SECRETS)
def test_it_appears_nowhere_else(secret, caplog):
    caplog.set_level(logging.DEBUG)
    library = logging.getLogger("stomp.py")
    caplog.set_level(logging.DEBUG, library.name)
    assert library.isEnabledFor(logging.DEBUG)
    texts = [text for fault in PLACES for text in _conversation(fault, secret)]
    texts += [caplog.text, *(f"{record.args!r} {record.__dict__}" for record in caplog.records)]
    assert not [text for text in texts for form in _forms(secret) if form in text]


def test_the_library_that_is_used_does_log(caplog):
    """Or the test above would look at nothing."""
    caplog.set_level(logging.DEBUG)
    list(_conversation(None, "hush"))
    assert any(record.name.startswith("stomp") for record in caplog.records)


def _conversation(fault, secret):
    """What is shown of a login, two commits and their failures."""
    with Peer(fault) as peer:
        url = f"{peer.url}?allow_insecure_login=true&heartbeat=0&connect_timeout=20&reply_timeout=0.2"
        settings = ConnectionSettings(url, user_name="user", password=secret)
        yield repr(settings)
        try:
            link = connect(settings)
        except JMSError as error:
            yield from _chain(error)
            return
        try:
            unit = link.unit()
            unit.send(TextMessage("a"), Queue("q"))
            yield from map(repr, (link, link._session, link._session._transport, unit))
            unit.commit()
            yield repr(link.consumer(Queue("q")))
        except JMSError as error:
            yield from _chain(error)
        link.close(1)


def _chain(error):
    while error is not None:
        yield f"{error} {error!r}"
        error = error.__cause__ or error.__context__


def _forms(secret):
    return {secret, quote(secret), quote(secret, safe=""), repr(secret)[1:-1], b64encode(secret.encode()).decode()}
