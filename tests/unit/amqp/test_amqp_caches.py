"""What is remembered of messages is bounded, however different they are."""

import pkgutil
from importlib import import_module

from jmsjca.providers import amqp

MOST = 4096


def test_every_cache_has_a_bound():
    modules = [import_module(found.name) for found in pkgutil.walk_packages(amqp.__path__, f"{amqp.__name__}.")]
    bounds = {
        f"{module.__name__}.{name}": cached.cache_info().maxsize
        for module in modules
        for name, cached in vars(module).items()
        if hasattr(cached, "cache_info")
    }
    assert bounds
    assert {name: bound for name, bound in bounds.items() if bound is None or bound > MOST} == {}
