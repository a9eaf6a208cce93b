"""Providers by URL scheme, from the entry points of the group ``jmsjca.providers``."""

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from jmsjca.arguments import did_you_mean
from jmsjca.config.connection_url import successor
from jmsjca.errors import ProviderNotInstalledError, UnknownSchemeError
from jmsjca.spi import Provider

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["check_scheme", "find_provider", "known_schemes"]

_GROUP = "jmsjca.providers"


def known_schemes() -> list[str]:
    """Return the schemes that a connection URL may begin with, sorted."""
    return sorted(entry.name for entry in _entry_points())


@cache
def check_scheme(scheme: str) -> None:
    """Check that there is a provider for a scheme, without importing it.

    Raises:
        UnknownSchemeError: As `find_provider`.
    """
    if scheme not in known_schemes():
        raise UnknownSchemeError(_unknown_scheme_message(scheme))


@cache
def find_provider(scheme: str) -> Provider:
    """Return the provider of a scheme. Its client library is imported at the first call, not earlier.

    Args:
        scheme: The scheme of a connection URL.

    Raises:
        UnknownSchemeError: No provider is registered for it; the message suggests the most similar one.
        ProviderNotInstalledError: The provider's client library is missing.
    """
    entry = next((e for e in _entry_points() if e.name == scheme), None)
    if entry is None:
        raise UnknownSchemeError(_unknown_scheme_message(scheme))
    try:
        provider: Provider = entry.load()()
    except ImportError as error:
        raise ProviderNotInstalledError(
            f"The provider of {scheme}:// needs {error.name!r}, which is missing: {_install_command(entry)}"
        ) from error
    return provider


def _entry_points() -> "Iterable[EntryPoint]":
    from importlib.metadata import entry_points  # slow to import, and needed only for the first connection

    return entry_points(group=_GROUP)


def _install_command(entry: "EntryPoint") -> str:
    package = entry.dist.name if entry.dist else "jmsjca"
    extras = f"[{','.join(entry.extras)}]" if entry.extras else ""
    return f'pip install "{package}{extras}"'


def _unknown_scheme_message(scheme: str) -> str:
    if advice := successor(scheme):
        return f"No provider for the scheme {scheme}://, which is one of JMSJCA's: {advice}."
    schemes = {name: f"{name}://" for name in known_schemes()}
    return f"No provider for the scheme {scheme}:// {did_you_mean(scheme.lower(), schemes)}."
