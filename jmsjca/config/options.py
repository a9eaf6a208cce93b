"""Options: JMSJCA's own names (``JMSJCA.…``), the text forms of Java properties, and options of endpoints."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from jmsjca.config.text import did_you_mean
from jmsjca.errors import InvalidOptionError, excerpt

__all__ = [
    "InboundOptions",
    "is_jmsjca_option",
    "jmsjca_options",
    "normalise_names",
    "parse_options",
    "provider_options",
    "read_options",
]

_MAX_MILLISECONDS = 86_400_000  # milliseconds: a day

_SEPARATOR = "JMSJCA.sep"
_PREFIX = "jmsjca."
_NAMES = (
    "JMSJCA.ACC",
    "JMSJCA.BypassRA",
    "JMSJCA.ForceBMT",
    "JMSJCA.IgnoreTx",
    "JMSJCA.LocatorClass",
    "JMSJCA.NoXA",
    "JMSJCA.Strict",
    "JMSJCA.concurrencymode",
    "JMSJCA.idletimeout",
    "JMSJCA.interceptorsvcname",
    "JMSJCA.messagewrapping",
    "JMSJCA.minimalreconnectlogging",
    "JMSJCA.minimalreconnectloggingds",
    "JMSJCA.nocfcache",
    "JMSJCA.overrideissamerm",
    "JMSJCA.poolmaxsize",
    "JMSJCA.poolminsize",
    "JMSJCA.pooltimeout",
    "JMSJCA.producerpooling",
    "JMSJCA.receivetimeout",
    "JMSJCA.redeliveryhandling",
    "JMSJCA.redeliveryredirect",
    "JMSJCA.selector",
    _SEPARATOR,
)
_SPELLINGS = {name.removeprefix("JMSJCA.").lower(): name for name in _NAMES}


def is_jmsjca_option(name: str) -> bool:
    """Tell whether an option is one of JMSJCA's, and not the provider's."""
    return name.lower().startswith(_PREFIX)


def normalise_names(options: Mapping[str, str]) -> dict[str, str]:
    """Give options with JMSJCA's in their own spelling, whatever case they were written in.

    Raises:
        InvalidOptionError: JMSJCA has no such option.
    """
    return {_canonical_name(name) if is_jmsjca_option(name) else name: value for name, value in options.items()}


def jmsjca_options(options: Mapping[str, str]) -> dict[str, str]:
    """Give JMSJCA's among options, in their own spelling.

    Raises:
        InvalidOptionError: There is no such option.
    """
    return normalise_names({name: value for name, value in options.items() if is_jmsjca_option(name)})


def provider_options(options: Mapping[str, str]) -> dict[str, str]:
    """Give the others, which only the provider knows."""
    return {name: value for name, value in options.items() if not is_jmsjca_option(name)}


def _canonical_name(name: str) -> str:
    key = name.lower().removeprefix(_PREFIX)
    if key not in _SPELLINGS:
        raise InvalidOptionError(f"There is no option {excerpt(name)!r} {did_you_mean(key, _SPELLINGS)}.")
    return _SPELLINGS[key]


_SEPARATOR_PREFIX = f"{_SEPARATOR}="


def parse_options(text: str) -> dict[str, str]:
    r"""Read options as the manual writes them.

    Args:
        text: Java properties: ``key=value`` in lines, ``#`` or ``!`` before comments. If ``JMSJCA.sep=`` stands
            anywhere, the character behind it separates options as the end of a line does; a backslash before it makes
            it stand for itself: ``JMSJCA.sep=,JMSJCA.concurrencymode=cc,other=a\,b``.

    Raises:
        InvalidOptionError: No character stands behind ``JMSJCA.sep=``, or an escape ``\u`` is wrong.
    """
    _, mark, rest = text.partition(_SEPARATOR_PREFIX)
    if not mark:
        return _parse_properties(text)
    if not rest:
        raise InvalidOptionError(
            f"The options end with {_SEPARATOR_PREFIX}; the character that separates them must follow."
        )
    separator = re.escape(rest[0])
    return _parse_properties(re.sub(rf"\\({separator})|{separator}", lambda found: found[1] or "\n", text))


def read_options(options: str | Mapping[str, str] | None) -> dict[str, str]:
    """Read options from text or a mapping, JMSJCA's in their own spelling and without the separator.

    Raises:
        InvalidOptionError: The text cannot be read, or JMSJCA has no such option.
    """
    given = parse_options(options) if isinstance(options, str) else options or {}
    return {name: value for name, value in normalise_names(given).items() if name != _SEPARATOR}


_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_PAIR = re.compile(r"(?P<key>(?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(?P<value>.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u(?P<code>[0-9A-Fa-f]{4})|(?P<other>.))", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def _parse_properties(text: str) -> dict[str, str]:
    r"""Read properties as ``java.util.Properties`` does; of a key given twice the last value counts.

    Args:
        text: Lines; ``=``, ``:`` or blanks end a key, ``#`` and ``!`` begin a comment, a backslash at the end of a line
            continues it in the next one.

    Raises:
        InvalidOptionError: An escape ``\u`` has not four hexadecimal digits.
    """
    pairs = (_PAIR.fullmatch(line) for line in _logical_lines(text))
    return {_unescape(pair["key"]): _unescape(pair["value"]) for pair in pairs if pair}


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


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_unescape_match, text)


def _unescape_match(escape: re.Match[str]) -> str:
    if escape["code"]:
        return chr(int(escape["code"], 16))
    if escape["other"] == "u":
        found = excerpt(escape.string[escape.start() :], 6)
        raise InvalidOptionError(f"The escape {found} of an option needs four hexadecimal digits, as \\u00e4 has them.")
    return _CONTROLS.get(escape["other"], escape["other"])


@dataclass(frozen=True, slots=True)
class InboundOptions:
    """What JMSJCA's options say of an endpoint, beside the fields of its spec that they replace.

    Attributes:
        redelivery_redirect: True to move messages as they are, not as copies with additional properties.
        receive_timeout: Seconds that a receiver of mode "sync" waits for a message before it looks around; a day if the
            option is 0, which is for ever in JMS.
        minimal_reconnect_logging: True to tell of a broken connection once, not at each attempt.
        minimal_reconnect_logging_ds: True to do so where another node has the durable subscription.
    """

    redelivery_redirect: bool = False
    receive_timeout: float = 10.0
    minimal_reconnect_logging: bool = False
    minimal_reconnect_logging_ds: bool = False

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        """Read them.

        Args:
            options: All options in force; JMSJCA's in their own spelling.

        Raises:
            InvalidOptionError: A value cannot be used.
        """
        return cls(
            redelivery_redirect=options.get("JMSJCA.redeliveryredirect", "").lower() == "true",
            receive_timeout=_parse_milliseconds(
                "JMSJCA.receivetimeout", options.get("JMSJCA.receivetimeout") or "10000"
            ),
            minimal_reconnect_logging=options.get("JMSJCA.minimalreconnectlogging") == "1",
            minimal_reconnect_logging_ds=options.get("JMSJCA.minimalreconnectloggingds") == "1",
        )


def _parse_milliseconds(name: str, text: str) -> float:
    milliseconds = (
        int(text)
        if text.isascii() and text.isdigit() and len(text) <= len(str(_MAX_MILLISECONDS))
        else _MAX_MILLISECONDS + 1
    )
    if milliseconds > _MAX_MILLISECONDS:
        raise InvalidOptionError(f"{name} is a number of milliseconds up to a day, not {excerpt(text)!r}.")
    return (milliseconds or _MAX_MILLISECONDS) / 1000
