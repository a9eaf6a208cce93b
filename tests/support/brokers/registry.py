"""The brokers that this process has started, and the pairs of broker and protocol for tests."""

import os
import shutil

from brokers.products import BROKERS
from brokers.provisioning import BrokerMissing

_shared = {}
_missing = {}
_own = []


def shared(name):
    """Return the one broker of this name that all tests share; the first who asks starts it."""
    if name in _missing:
        raise _missing[name]  # one try is enough
    if name not in _shared:
        _shared[name] = BROKERS[name]()
    try:
        return _shared[name].start()
    except BrokerMissing as problem:
        _missing[name] = problem
        raise


def own(name):
    """Return a new broker that nobody else uses, not yet started."""
    _own.append(BROKERS[name]())
    return _own[-1]


def known():
    """Return the brokers that there are now by a name for each."""
    return _shared | {f"{broker.name}-own-{number}": broker for number, broker in enumerate(_own)}


def discard_own():
    """End the brokers that one test had for itself."""
    while _own:
        discard(_own.pop())


def discard_shared():
    """End the brokers that all tests share."""
    while _shared:
        discard(_shared.popitem()[1])


def discard(broker):
    """End a broker, and remove what is its."""
    broker.kill()  # its data goes away anyhow
    shutil.rmtree(broker.folder)


def url_of(pair):
    """Return the URL for a pair such as ``artemis-amqp``: the user's own broker, else one that all tests share."""
    return os.environ.get(variable_of(pair)) or _start(pair)


def variable_of(pair):
    """Return the environment variable that points the tests at a broker of the user's."""
    return f"JMSJCA_{pair.replace('-', '_').upper()}_URL"


def _start(pair):
    name, protocol = pair.split("-", 1)
    return shared(name).url(protocol)
