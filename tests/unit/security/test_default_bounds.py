"""Each resource has a finite bound by default: nothing that a program leaves out is unlimited."""

import inspect
import math
import pkgutil
import re
from dataclasses import fields
from importlib import import_module

import pytest

import jmsjca
from jmsjca import ActivationSpec, ConnectionFactory, Limits
from jmsjca.management.console import access
from jmsjca.outbound.pool import ConnectionPool
from jmsjca.providers.amqp.provider import AMQPOptions
from jmsjca.providers.common.network import NetworkOptions
from jmsjca.providers.stomp.provider import STOMPOptions
from jmsjca.redelivery.decision import RedeliveryHandler
from jmsjca.redelivery.encounter import EncounterCache


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


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("providers.amqp.provider", ["_MAX_FRAME_BYTES"]),
        ("providers.amqp.links.receiver", ["_MAX_UNREQUESTED"]),
        ("providers.common.amqp_types", ["MAX_DEPTH"]),
        ("providers.stomp.protocol.frames", ["MAX_LINE", "MAX_HEADERS", "MAX_COMMAND", "MAX_HEAD"]),
        ("selectors.parser", ["_MAX_LENGTH", "MAX_DEPTH", "_MAX_TOKENS"]),
        ("messages.json_text", ["_MAX_DEPTH"]),
        ("management.health", ["_MAX_CONNECTIONS", "_MAX_SECONDS"]),
        ("management.console.server", ["_MAX_CONNECTIONS", "_MAX_HEAD", "_REQUEST_SECONDS"]),
        ("management.mcp_server", ["_MAX_PAGE_SIZE", "_MAX_PLAN", "_MAX_TEXT", "_MAX_FIELD", "_LONGEST_LINE"]),
    ],
)
def test_sizes_and_depths_of_what_others_send(module, names):
    found = vars(import_module(f"jmsjca.{module}"))
    assert all(is_bound(found[name]) for name in names)


def test_batches_and_staging_of_spark():
    from jmsjca.spark.options import SourceOptions

    bounds = {each.name: each.default for each in fields(SourceOptions) if each.name.startswith("max")}
    assert {"maxMessagesPerBatch", "maxBytesPerBatch"} <= set(bounds)
    assert all(map(is_bound, bounds.values()))


BOUND = re.compile(r"max_|limits?$|capacity|_size$|_bytes$|prefetch|outstanding|history")
WITHOUT = {  # parameters of such a name that bound nothing by default
    "limits": "the default is Limits()",
    "batch_size": "0 makes no batches",
    "min_size": "it is no upper bound",
    "max_size": "of ConnectionPool.resize: None leaves the bound as it is",
    "pool_max_size": "of an option: None leaves the bound of the pool",
    "pool_min_size": "it is no upper bound",
    "max_outstanding": "ten for each endpoint, by a factory",
    "pool_size": "of a descriptor that was read: empty if it names none",
    "prefetchEpochs": "0 prefetches none",
    "rate_limit": "of messages a second: a pace, which uses no resource",
    "max_waiting": "threads of the program itself",
    "max_deliveries": "of a destination of the embedded broker: the redelivery handling of its listeners decides",
}
ROOMS = ("jmsjca.demo", "jmsjca.testing", "jmsjca.spi", "jmsjca.providers")  # with parameters of no user


def public_parameters():
    """Yield the parameters with a default of the public functions, constructors and methods."""
    for module in pkgutil.walk_packages(jmsjca.__path__, "jmsjca."):
        if module.name.startswith(ROOMS) or module.name.endswith("__main__"):
            continue
        found = import_module(module.name)
        for name in getattr(found, "__all__", ()):
            public = getattr(found, name)
            members = vars(public).items() if inspect.isclass(public) else ()
            functions = [each for key, each in members if inspect.isfunction(each) and not key.startswith("_")]
            for each in filter(callable, [public, *functions]):
                yield from ((name, parameter) for parameter in parameters_of(each))


def parameters_of(function):
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # it has no signature
        return []
    return [each for each in found if each.default is not each.empty]


def test_a_parameter_that_bounds_something_has_a_finite_default():
    found = [(owner, each) for owner, each in public_parameters() if BOUND.search(each.name)]
    assert len(found) > 50
    unbound = {each.name for _, each in found if each.default is None or not is_bound(each.default)}
    assert unbound <= set(WITHOUT), unbound - set(WITHOUT)
