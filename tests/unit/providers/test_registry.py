"""URL schemes and their providers."""

from importlib.metadata import EntryPoint

import pytest

from jmsjca import ConnectionFactory
from jmsjca.config.connection_url import FAMILIES
from jmsjca.errors import ProviderNotInstalledError, UnknownSchemeError
from jmsjca.providers import find_provider, known_schemes, registry
from jmsjca.providers.embedded.provider import EmbeddedProvider


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, "jmsjca.providers")


@pytest.fixture
def third_party(monkeypatch):
    """A registry with providers that are not all installed."""
    entries = [
        entry("amqps", "jmsjca_no_such_module:Provider [amqp]"),
        entry("embedded", "jmsjca.providers.embedded.provider:EmbeddedProvider"),
    ]
    monkeypatch.setattr(registry, "_entry_points", lambda: entries)
    find_provider.cache_clear()
    yield
    find_provider.cache_clear()


def test_embedded_is_registered():
    assert "embedded" in known_schemes()
    assert isinstance(find_provider("embedded"), EmbeddedProvider)
    assert find_provider("embedded") is find_provider("embedded")


def test_protocols_are_registered():
    assert {"amqp", "amqps", "embedded", "stomp", "stomp+ssl"} <= set(known_schemes())


@pytest.mark.parametrize("scheme", FAMILIES)
def test_scheme_of_a_family_tells_how_its_broker_is_reached(scheme):
    """Each names a protocol that is spoken here, and a URL with one of the schemes; or names that are looked up."""
    with pytest.raises(UnknownSchemeError, match=r"one of JMSJCA's: .*((AMQP 1\.0|STOMP).*(amqp|stomp)|lookup)://"):
        ConnectionFactory(f"{scheme}://host:1").create_connection()


@pytest.mark.parametrize("scheme", ["embeded", "embeddde", "embbeded"])
def test_unknown_scheme_suggests_the_nearest(scheme):
    with pytest.raises(UnknownSchemeError, match=r"\(did you mean embedded://\?\)"):
        find_provider(scheme)


def test_unknown_scheme_without_a_near_one_lists_all():
    with pytest.raises(UnknownSchemeError, match=r"there are .*embedded://"):
        find_provider("zzz")


def test_unknown_scheme_is_found_out_when_connecting():
    factory = ConnectionFactory("zzz://host")
    with pytest.raises(UnknownSchemeError):
        factory.create_connection()


@pytest.mark.usefixtures("third_party")
def test_missing_library_gives_the_line_to_install_it():
    with pytest.raises(ProviderNotInstalledError, match=r'pip install "jmsjca\[amqp\]"') as caught:
        find_provider("amqps")
    assert "jmsjca_no_such_module" in str(caught.value)
    assert isinstance(caught.value.__cause__, ImportError)


@pytest.mark.usefixtures("third_party")
def test_missing_library_of_one_provider_leaves_the_others_alone():
    assert known_schemes() == ["amqps", "embedded"]
    assert isinstance(find_provider("embedded"), EmbeddedProvider)
