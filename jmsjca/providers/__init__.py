"""Providers: implementations of `jmsjca.spi`. The rest of jmsjca uses them only through the registry."""

from jmsjca.providers.registry import find_provider, known_schemes

__all__ = ["find_provider", "known_schemes"]
