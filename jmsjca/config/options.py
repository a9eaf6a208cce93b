"""Options: JMSJCA's own names (``JMSJCA.…``), the text forms of Java properties, and options of endpoints."""

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

from jmsjca.arguments import TEXT, Constraint, did_you_mean
from jmsjca.errors import InvalidOptionError, excerpt

__all__ = [
    "SPELLINGS",
    "InboundOptions",
    "OutboundOptions",
    "environment_options",
    "is_jmsjca_option",
    "jmsjca_options",
    "parse_options",
    "provider_options",
    "read_options",
]

_MAX_MILLISECONDS = 86_400_000  # milliseconds: a day
_MAX_DIGITS = 9

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
    "JMSJCA.retrytimeout",
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
SPELLINGS = {name.removeprefix("JMSJCA.").lower(): name for name in _NAMES}  #: of the options, without the prefix
_FACTORIES_OF_JNDI = {"jmsjca.unifiedcf", "jmsjca.queuecf", "jmsjca.topiccf"}


def is_jmsjca_option(name: str) -> bool:
    """Return True for an option of JMSJCA, and False for an option of the provider."""
    return name.lower().startswith(_PREFIX) and name.lower() not in _FACTORIES_OF_JNDI


def _normalise_names(options: Mapping[str, str]) -> dict[str, str]:
    """Return options with JMSJCA's options in their canonical spelling. Letter case is ignored.

    Raises:
        InvalidOptionError: An option begins with ``JMSJCA.`` and is unknown.
    """
    return {_canonical_name(name) if is_jmsjca_option(name) else name: value for name, value in options.items()}


def jmsjca_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return only the options of JMSJCA, in their canonical spelling.

    Raises:
        InvalidOptionError: An option begins with ``JMSJCA.`` and is unknown.
    """
    return _normalise_names({name: value for name, value in options.items() if is_jmsjca_option(name)})


def provider_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return only the options of the provider."""
    return {name: value for name, value in options.items() if not is_jmsjca_option(name)}


def _canonical_name(name: str) -> str:
    key = name.lower().removeprefix(_PREFIX)
    if key not in SPELLINGS:
        raise InvalidOptionError(f"There is no option {excerpt(name)!r} {did_you_mean(key, SPELLINGS)}.")
    return SPELLINGS[key]


_SEPARATOR_PREFIX = f"{_SEPARATOR}="


def parse_options(text: str) -> dict[str, str]:
    r"""Parse options in the text form of the manual.

    Args:
        text: Java properties: lines ``key=value``, and comments that begin with ``#`` or ``!``. The character after
            ``JMSJCA.sep=``, if present, separates options like the end of a line; a backslash escapes it:
            ``JMSJCA.sep=,JMSJCA.concurrencymode=cc,other=a\,b``.

    Raises:
        InvalidOptionError: No character follows ``JMSJCA.sep=``, or an escape ``\u`` is invalid.
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
    """Return options from text or a mapping, with canonical names and without the separator option.

    Raises:
        InvalidOptionError: The text cannot be parsed, an option begins with ``JMSJCA.`` and is unknown, or a name or a
            value is not a text.
    """
    given = parse_options(options) if isinstance(options, str) else _mapping_of(options)
    return {name: value for name, value in _normalise_names(given).items() if name != _SEPARATOR}


_MAPPING = Constraint[Mapping[str, str]](
    "text, or a mapping from names to texts", (Mapping,), error=InvalidOptionError, secret=True
)
_NAME = replace(TEXT, error=InvalidOptionError)
_VALUE = replace(TEXT, error=InvalidOptionError, secret=True)


def _mapping_of(options: Mapping[str, str] | None) -> Mapping[str, str]:
    if options is None:
        return {}
    for name, value in _MAPPING("options", options).items():
        _NAME("The name of an option", name)
        _VALUE(f"The option {excerpt(name)}", value)
    return options


_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_PAIR = re.compile(r"(?P<key>(?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(?P<value>.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u(?P<code>[0-9A-Fa-f]{4})|(?P<other>.))", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def _parse_properties(text: str) -> dict[str, str]:
    r"""Parse properties as ``java.util.Properties`` does. If a key is repeated, the last value is used.

    Args:
        text: Lines of properties. ``=``, ``:`` or white space ends a key, ``#`` and ``!`` begin a comment, and a
            backslash at the end of a line continues it on the next one.

    Raises:
        InvalidOptionError: An escape ``\u`` does not have four hexadecimal digits.
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
    if begun:  # the last line ended with a continuation
        yield "".join(begun)


def _ends_with_escape(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_unescape_match, text)


def _unescape_match(escape: re.Match[str]) -> str:
    if escape["code"]:
        return chr(int(escape["code"], 16))
    if escape["other"] == "u":
        raise InvalidOptionError(  # does not show the text, which may be a password
            "The escape \\u of an option needs four hexadecimal digits, as \\u00e4 has them; a backslash is \\\\."
        )
    return _CONTROLS.get(escape["other"], escape["other"])


@dataclass(frozen=True, slots=True)
class InboundOptions:
    """The options of JMSJCA that configure an endpoint without overriding a field of its spec.

    Attributes:
        redelivery_redirect: True to move messages unchanged, without additional properties.
        receive_timeout: The timeout in seconds of each receive in mode "sync". The option's value 0, which means
            forever in JMS, is replaced by a day.
        minimal_reconnect_logging: True to log a broken connection once, instead of at each attempt.
        minimal_reconnect_logging_ds: The same while another node holds the durable subscription.
        bean_managed: True if units are not container-managed, whatever the spec says: ``JMSJCA.NoXA`` or
            ``JMSJCA.ForceBMT``.
        locator: The name of the locator of the thread's transaction manager (``JMSJCA.LocatorClass``); None for the
            manager of the `transaction` package.
    """

    redelivery_redirect: bool = False
    receive_timeout: float = 10.0
    minimal_reconnect_logging: bool = False
    minimal_reconnect_logging_ds: bool = False
    bean_managed: bool = False
    locator: str | None = None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        """Return the options parsed from text.

        Args:
            options: All effective options. JMSJCA's options have their canonical spelling.

        Raises:
            InvalidOptionError: A value is invalid.
        """
        return cls(
            redelivery_redirect=_parse_boolean("JMSJCA.redeliveryredirect", options),
            receive_timeout=_parse_milliseconds(
                "JMSJCA.receivetimeout", options.get("JMSJCA.receivetimeout") or "10000"
            ),
            minimal_reconnect_logging=_parse_boolean("JMSJCA.minimalreconnectlogging", options, "1", "0"),
            minimal_reconnect_logging_ds=_parse_boolean("JMSJCA.minimalreconnectloggingds", options, "1", "0"),
            bean_managed=_parse_boolean("JMSJCA.NoXA", options) | _parse_boolean("JMSJCA.ForceBMT", options),
            locator=options.get("JMSJCA.LocatorClass", "").strip() or None,
        )


@dataclass(frozen=True, slots=True)
class OutboundOptions:
    """The options of JMSJCA that configure connection factories and their pools.

    Attributes:
        ignore_transacted: True to make every session transacted, whatever ``create_session`` asks for
            (``JMSJCA.IgnoreTx``). The default is ``managed``, the opposite of ``JMSJCA.ACC``.
        producer_pooling: True to keep a closed producer for reuse; None for the value of the factory.
        idle_timeout: Seconds without a successful use after which a pooled connection is checked; None for the value
            of the factory.
        pool_min_size: The number of connections that a pool keeps open; None for the value of the pool.
        pool_max_size: The maximum number of connections of a pool; None for the value of the pool.
        pool_timeout: Seconds to wait for a connection of an exhausted pool; negative fails at once, inf waits forever
            (0 in the option); None for the value of the pool.
        retry_timeout: Seconds for which sends are repeated while the broker cannot be reached; None for the value of
            the factory.
        managed: True if the sessions are under a transaction manager: the opposite of ``JMSJCA.ACC``. Without that
            option, True if the factory has a locator. ``JMSJCA.BypassRA`` sets it to False.
        locator: The name of the locator of the transaction manager (``JMSJCA.LocatorClass``); None for no locator.
        no_xa: True if the sessions take part only in the second phase of a commit (``JMSJCA.NoXA``). The default is
            ``JMSJCA.ACC``, the opposite of ``managed``.
        strict: True to refuse calls that Jakarta EE forbids in its containers (``JMSJCA.Strict``).
        no_factory_cache: True to look up the factory of a ``lookup://`` URL for each connection
            (``JMSJCA.nocfcache``).
    """

    ignore_transacted: bool = False
    producer_pooling: bool | None = None
    idle_timeout: float | None = None
    pool_min_size: int | None = None
    pool_max_size: int | None = None
    pool_timeout: float | None = None
    retry_timeout: float | None = None
    managed: bool = False
    locator: str | None = None
    no_xa: bool = True
    strict: bool = False
    no_factory_cache: bool = False

    @classmethod
    def of(cls, options: Mapping[str, str], *, has_locator: bool = False) -> Self:
        """Return the options parsed from text.

        Args:
            options: All effective options. JMSJCA's options have their canonical spelling.
            has_locator: True if the factory already has a locator of the transaction manager.

        Raises:
            InvalidOptionError: A value is invalid.
        """
        locator = options.get("JMSJCA.LocatorClass", "").strip() or None
        is_client = _parse_boolean("JMSJCA.ACC", options, default=not (has_locator or locator))
        is_bypassed = _parse_boolean("JMSJCA.BypassRA", options)
        managed = not is_client and not is_bypassed
        pooling, idle = options.get("JMSJCA.producerpooling"), options.get("JMSJCA.idletimeout")
        repeated = options.get("JMSJCA.retrytimeout")
        smallest, largest = options.get("JMSJCA.poolminsize"), options.get("JMSJCA.poolmaxsize")
        return cls(
            managed=managed,
            locator=locator,
            no_xa=_parse_boolean("JMSJCA.NoXA", options, default=is_client),
            ignore_transacted=_parse_boolean("JMSJCA.IgnoreTx", options, default=not is_client) and not is_bypassed,
            strict=_parse_boolean("JMSJCA.Strict", options),
            no_factory_cache=_parse_boolean("JMSJCA.nocfcache", options),
            producer_pooling=_parse_boolean("JMSJCA.producerpooling", options) if pooling else None,
            idle_timeout=_parse_milliseconds("JMSJCA.idletimeout", idle) if idle else None,
            retry_timeout=_parse_milliseconds("JMSJCA.retrytimeout", repeated) if repeated else None,
            pool_min_size=_parse_size("JMSJCA.poolminsize", smallest, 0) if smallest else None,
            pool_max_size=_parse_size("JMSJCA.poolmaxsize", largest, 1) if largest else None,
            pool_timeout=_parse_pool_timeout(options.get("JMSJCA.pooltimeout")),
        )


def environment_options() -> dict[str, str]:
    """Return the options in environment variables, as JMSJCA reads some of its options from system properties.

    ``JMSJCA_NOXA=true`` is the option ``JMSJCA.NoXA``. The variables apply only where a program passes them:
    ``ResourceAdapter(…, options=environment_options())``. Other variables that begin with ``JMSJCA_`` are ignored.
    """
    found = {SPELLINGS.get(name.removeprefix("JMSJCA_").lower()): text for name, text in _jmsjca_variables()}
    return {name: text for name, text in found.items() if name is not None and name != _SEPARATOR}


def _jmsjca_variables() -> Iterator[tuple[str, str]]:
    return ((name, text) for name, text in os.environ.items() if name.startswith("JMSJCA_"))


def _parse_boolean(name: str, options: Mapping[str, str], *numbers: str, default: bool = False) -> bool:
    """Return the value of a boolean option.

    Args:
        name: The name of the option.
        options: The options.
        numbers: The numbers for true and false that JMSJCA's manual defines for this option, if any.
        default: The value if the option is absent or empty.
    """
    text = options.get(name, "")
    words = {"true": True, "false": False, "": default, **dict(zip(numbers, (True, False), strict=False))}
    if text.strip().lower() not in words:
        known = " or ".join(word for word in words if word)
        raise InvalidOptionError(f"{name} must be {known}, not {_shown(text)}.")
    return words[text.strip().lower()]


def _shown(text: str) -> str:
    """Return an invalid value for an error message. It hides the value of an option that was not separated from it."""
    value, equals, _ = text.partition("=")
    return repr(excerpt(value) + equals + "…") if equals else repr(excerpt(text))


def _parse_size(name: str, text: str, least: int) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS and int(digits) >= least):
        raise InvalidOptionError(f"{name} must be a whole number from {least} on, not {_shown(text)}.")
    return int(digits)


def _parse_pool_timeout(text: str | None) -> float | None:
    if not text:
        return None
    if text.strip().startswith("-"):
        _parse_size("JMSJCA.pooltimeout", text.strip()[1:], 0)
        return -1.0
    return _parse_size("JMSJCA.pooltimeout", text, 0) / 1000 or math.inf


def _parse_milliseconds(name: str, text: str) -> float:
    milliseconds = (
        int(text)
        if text.isascii() and text.isdigit() and len(text) <= len(str(_MAX_MILLISECONDS))
        else _MAX_MILLISECONDS + 1
    )
    if milliseconds > _MAX_MILLISECONDS:
        raise InvalidOptionError(f"{name} is a number of milliseconds up to a day, not {_shown(text)}.")
    return (milliseconds or _MAX_MILLISECONDS) / 1000
