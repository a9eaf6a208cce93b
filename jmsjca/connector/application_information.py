"""Application-specific information: ``name=value`` pairs of verbs, attributes and meta-object rules, as one text.

``InputFormat=Cust_In;InputDestination=orders`` has two pairs. A ``;`` within single quotes belongs to its value.
"""

import re
from collections.abc import Iterator

from jmsjca.errors import ConfigurationError, excerpt

__all__ = ["information_pairs", "parse_information"]

_PAIR = re.compile(r"(?:'[^']*'|[^;'])+")


def parse_information(text: str) -> dict[str, str]:
    """Return the pairs of a text by their names in lower case, because names are not case-sensitive.

    Args:
        text: The pairs, separated by ``;``. Blanks around names and values are removed.

    Raises:
        ConfigurationError: A pair has no ``=``, a name is empty or occurs twice, or a quote is not closed.
    """
    pairs: dict[str, str] = {}
    for name, value in information_pairs(text):
        if name.lower() in pairs:
            raise ConfigurationError(f"{excerpt(text, 200)!r} has {excerpt(name)!r} twice; remove one of them.")
        pairs[name.lower()] = value
    return pairs


def information_pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a text, as they are written there.

    Args:
        text: The pairs, as for `parse_information`.

    Raises:
        ConfigurationError: A pair has no ``=``, a name is empty, or a quote is not closed.
    """
    if text.count("'") % 2:
        raise ConfigurationError(f"{excerpt(text, 200)!r} has an unclosed quote: double the one that ends a string.")
    for part in _PAIR.findall(text):
        name, equals, value = part.partition("=")
        if not part.strip():
            continue
        if not equals or not name.strip():
            raise ConfigurationError(
                f"{excerpt(part.strip(), 200)!r} is not a pair name=value of {excerpt(text, 200)!r}."
            )
        yield name.strip(), value.strip()
