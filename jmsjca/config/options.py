"""Options as text: Java properties, in lines or, with ``JMSJCA.sep``, in one line."""

import re
from collections.abc import Mapping

from jmsjca.config.option_names import SEPARATOR, named_right
from jmsjca.config.properties_text import parse_properties
from jmsjca.errors import InvalidOptionError

__all__ = ["parse_options", "read_options"]

_MARK = f"{SEPARATOR}="


def parse_options(text: str) -> dict[str, str]:
    r"""Read options as the manual writes them.

    Args:
        text: Java properties: ``key=value`` in lines, ``#`` or ``!`` before comments. If ``JMSJCA.sep=`` stands
            anywhere, the character behind it separates options as the end of a line does; a backslash before it makes
            it stand for itself: ``JMSJCA.sep=,JMSJCA.concurrencymode=cc,other=a\,b``.

    Raises:
        InvalidOptionError: No character stands behind ``JMSJCA.sep=``, or an escape ``\u`` is wrong.
    """
    _, mark, rest = text.partition(_MARK)
    if not mark:
        return parse_properties(text)
    if not rest:
        raise InvalidOptionError(f"The options end with {_MARK}; the character that separates them must follow.")
    separator = re.escape(rest[0])
    return parse_properties(re.sub(rf"\\({separator})|{separator}", lambda found: found[1] or "\n", text))


def read_options(options: str | Mapping[str, str] | None) -> dict[str, str]:
    """Read options from text or a mapping, JMSJCA's in their own spelling and without the separator.

    Raises:
        InvalidOptionError: The text cannot be read, or JMSJCA has no such option.
    """
    given = parse_options(options) if isinstance(options, str) else options or {}
    return {name: value for name, value in named_right(given).items() if name != SEPARATOR}
