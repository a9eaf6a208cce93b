"""Where a test finds a broker that speaks a protocol."""

import os

from brokers.registry import shared


def url_of(pair):
    """Return the URL for a pair such as ``artemis-amqp``: the user's own broker, else one that all tests share."""
    return os.environ.get(variable_of(pair)) or _start(pair)


def variable_of(pair):
    """Return the environment variable that points the tests at a broker of the user's."""
    return f"JMSJCA_{pair.replace('-', '_').upper()}_URL"


def _start(pair):
    name, protocol = pair.split("-", 1)
    return shared(name).url(protocol)
