"""Providers: what speaks to brokers. Used through `jmsjca.spi` and the registry only."""

from jmsjca.providers.registry import find_provider, known_schemes

__all__ = ["find_provider", "known_schemes"]
