"""The names of JMSJCA's options: those that begin with ``JMSJCA.``; all others are the provider's."""

from collections.abc import Mapping

from jmsjca.config.hints import did_you_mean
from jmsjca.errors import InvalidOptionError
from jmsjca.messages.shown import shown

__all__ = ["SEPARATOR", "is_own", "named_right", "own_options", "provider_options"]

SEPARATOR = "JMSJCA.sep"
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
    SEPARATOR,
)
_SPELLINGS = {name.removeprefix("JMSJCA.").lower(): name for name in _NAMES}


def is_own(name: str) -> bool:
    """Tell whether an option is one of JMSJCA's, and not the provider's."""
    return name.lower().startswith(_PREFIX)


def named_right(options: Mapping[str, str]) -> dict[str, str]:
    """Give options with JMSJCA's in their own spelling, whatever case they were written in.

    Raises:
        InvalidOptionError: JMSJCA has no such option.
    """
    return {_spelling(name) if is_own(name) else name: value for name, value in options.items()}


def own_options(options: Mapping[str, str]) -> dict[str, str]:
    """Give JMSJCA's among options, in their own spelling.

    Raises:
        InvalidOptionError: There is no such option.
    """
    return named_right({name: value for name, value in options.items() if is_own(name)})


def provider_options(options: Mapping[str, str]) -> dict[str, str]:
    """Give the others, which only the provider knows."""
    return {name: value for name, value in options.items() if not is_own(name)}


def _spelling(name: str) -> str:
    key = name.lower().removeprefix(_PREFIX)
    if key not in _SPELLINGS:
        raise InvalidOptionError(f"There is no option {shown(name)!r} {did_you_mean(key, _SPELLINGS)}.")
    return _SPELLINGS[key]
