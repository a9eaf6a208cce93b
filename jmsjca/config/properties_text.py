"""The text format of Java's properties: one ``key=value`` per line, with comments, escapes and continued lines."""

import re
from collections.abc import Iterator

from jmsjca.errors import InvalidOptionError
from jmsjca.messages.shown import shown

__all__ = ["parse_properties"]

_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_PAIR = re.compile(r"(?P<key>(?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(?P<value>.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u(?P<code>[0-9A-Fa-f]{4})|(?P<other>.))", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    r"""Read properties as ``java.util.Properties`` does; of a key given twice the last value counts.

    Args:
        text: Lines; ``=``, ``:`` or blanks end a key, ``#`` and ``!`` begin a comment, a backslash at the end of a line
            continues it in the next one.

    Raises:
        InvalidOptionError: An escape ``\u`` has not four hexadecimal digits.
    """
    pairs = (_PAIR.fullmatch(line) for line in _logical_lines(text))
    return {_unescaped(pair["key"]): _unescaped(pair["value"]) for pair in pairs if pair}


def _logical_lines(text: str) -> Iterator[str]:
    begun: list[str] = []
    for line in _LINE_END.split(text):
        rest = line.lstrip(_BLANKS)
        if not begun and (not rest or rest[0] in "#!"):
            continue
        continued = _ends_with_escape(rest)
        begun.append(rest[:-1] if continued else rest)
        if not continued:
            yield "".join(begun)
            begun = []
    if begun:  # the last line was to be continued
        yield "".join(begun)


def _ends_with_escape(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    if escape["code"]:
        return chr(int(escape["code"], 16))
    if escape["other"] == "u":
        found = shown(escape.string[escape.start() :], 6)
        raise InvalidOptionError(f"The escape {found} of an option needs four hexadecimal digits, as \\u00e4 has them.")
    return _CONTROLS.get(escape["other"], escape["other"])
