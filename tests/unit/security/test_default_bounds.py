"""Each resource has a finite bound by default: nothing that a program leaves out is unlimited."""

import inspect
import math
from dataclasses import fields

import pytest

from jmsjca import ActivationSpec, ConnectionFactory, Limits
from jmsjca.management.console import access
from jmsjca.outbound.pool import ConnectionPool
from jmsjca.providers.amqp.login import AMQPOptions
from jmsjca.providers.common.network import NetworkOptions
from jmsjca.providers.stomp.provider import STOMPOptions
from jmsjca.redelivery.encounter import EncounterCache
from jmsjca.redelivery.handler import RedeliveryHandler


def is_bound(value):
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


@pytest.mark.parametrize("name", [each.name for each in fields(Limits)])
def test_limits_of_a_connection(name):
    assert is_bound(getattr(Limits(), name))


@pytest.mark.parametrize("options", [NetworkOptions, AMQPOptions, STOMPOptions])
def test_waits_for_a_broker(options):
    assert all(is_bound(getattr(options(), name)) for name in ("connect_timeout", "reply_timeout", "heartbeat"))


def test_threads_and_open_units_of_a_listener():
    spec = ActivationSpec(destination="orders")
    assert is_bound(spec.endpoint_pool_max_size)
    assert is_bound(spec.max_outstanding)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (ConnectionPool, "max_size"),
        (ConnectionFactory, "idle_timeout"),
        (EncounterCache, "capacity"),
        (RedeliveryHandler, "capacity"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_pools_and_tables(function, name):
    assert is_bound(inspect.signature(function).parameters[name].default)


def test_requests_to_the_console():
    bounds = {name: value for name, value in vars(access).items() if name.startswith("_MAX_")}
    assert {"_MAX_QUERY", "_MAX_FORM", "_MAX_FIELDS"} <= set(bounds)
    assert all(map(is_bound, (*bounds.values(), access._FORM_SECONDS)))
