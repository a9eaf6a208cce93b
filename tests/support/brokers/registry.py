"""The brokers that this process's tests have started."""

import shutil

from brokers.cache import BrokerMissing
from brokers.catalogue import BROKERS

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
