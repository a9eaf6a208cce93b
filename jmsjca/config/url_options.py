"""Options that are given beside a connection URL, put into it for the provider."""

from collections.abc import Mapping
from urllib.parse import urlencode

from jmsjca.config.url import ConnectionURL

__all__ = ["add_options"]


def add_options(url: str, options: Mapping[str, str]) -> str:
    """Give the URL with options added that it does not have yet.

    Args:
        url: A connection URL.
        options: The provider's.

    Raises:
        InvalidURLError: The URL does not parse.
    """
    present = ConnectionURL.parse(url).query
    added = urlencode({name: value for name, value in options.items() if name not in present})
    if not added:
        return url
    return f"{url}{'&' if '?' in url else '?'}{added}"
