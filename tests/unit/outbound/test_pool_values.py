"""The sizes and times of a ConnectionPool: those that it cannot have are refused before anything is opened."""

import threading

import pytest

from jmsjca.errors import ConfigurationError, InvalidArgumentError
from jmsjca.outbound.pool import ConnectionPool
from tests.unit.outbound.pooling import ScriptedFactory
from tests.unit.outbound.test_pool import sizes, use


@pytest.fixture
def factory(jms_broker_url):
    return ScriptedFactory(jms_broker_url)


@pytest.fixture
def pool(factory):
    with ConnectionPool(factory, max_size=2) as pool:
        yield pool


@pytest.mark.parametrize(
    "wrong",
    [
        *({name: value} for name in ("min_size", "max_size", "max_waiting") for value in ("2", 2.5, True, -1, None)),
        *({name: value} for name in ("max_idle", "max_lifetime") for value in ("x", True, -1, float("nan"), None)),
        *({"timeout": value} for value in ("x", True, -3, float("nan"), float("inf"), 1e10)),
        {"max_lifetime": 0},  # `wait` would open connections without an end
    ],
    ids=str,
)
def test_values_that_a_pool_cannot_have_are_refused(factory, wrong):
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        ConnectionPool(factory, **wrong)
    assert factory.opened == []


@pytest.mark.parametrize("timeout", ["x", -3, float("nan"), float("inf")])
def test_timeouts_that_no_lock_can_wait_for_are_refused(pool, timeout):
    for call in (
        lambda: pool.get_connection(timeout=timeout),
        lambda: pool.wait(timeout),
        lambda: pool.open(wait=True, timeout=timeout),
        lambda: pool.close(timeout),
    ):
        with pytest.raises(InvalidArgumentError, match="timeout"):
            call()
    assert (pool.closed, pool.get_stats()["requests_waiting"]) == (False, 0)


@pytest.mark.parametrize("max_idle", [float("inf"), 1e10])
def test_idle_time_beyond_that_of_a_lock_starts_no_timer(factory, max_idle):
    with ConnectionPool(factory, max_idle=max_idle, max_lifetime=float("inf")) as pool:
        use(pool)
        assert not [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
        assert sizes(pool) == (1, 1)
