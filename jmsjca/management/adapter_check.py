"""The check of an adapter before it starts: the URLs and the selectors of its listeners. Nothing is connected."""

from collections.abc import Iterator

from jmsjca.adapter import ResourceAdapter
from jmsjca.config.connection_url import ConnectionURL
from jmsjca.errors import JMSError
from jmsjca.inbound import Activation, DistributedActivation
from jmsjca.providers.registry import find_provider
from jmsjca.selectors import Selector

__all__ = ["check_rows"]


def check_rows(adapter: ResourceAdapter) -> Iterator[dict[str, str | None]]:
    """Yield a row for each listener: its name, its handler, and the first problem with it.

    Args:
        adapter: The adapter; the fields of its activation specs are valid, or it would not exist.
    """
    for each in adapter.activations:
        yield {"listener": each.name, "handler": each.handler_name, "problem": _problem(each)}


def _problem(activation: Activation) -> str | None:
    sides = [activation, activation.topic_side] if isinstance(activation, DistributedActivation) else [activation]
    try:
        for side in sides:
            _check_url(side.connection_factory().login.url)
            if side.spec.selector:
                Selector.parse(side.spec.selector)
    except JMSError as error:
        return str(error)
    return None


def _check_url(text: str) -> None:
    """Check the scheme of a URL, and what else its provider can check without a connection.

    Raises:
        ConfigurationError: The URL cannot be used.
        ProviderNotInstalledError: The client library of its provider is missing.
    """
    url = ConnectionURL.parse(text).for_provider()
    check = getattr(find_provider(url.protocol), "check_url", None)  # providers of others may lack it
    if check is not None:
        check(url)
