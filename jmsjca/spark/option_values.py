"""The texts of options as values: numbers, durations, sizes, names, selectors."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from jmsjca.arguments import did_you_mean
from jmsjca.errors import ConfigurationError, InvalidOptionError, InvalidSelectorError
from jmsjca.selectors import Selector, build_selector
from jmsjca.spark.credentials import parse_credentials
from jmsjca.spark.schema import COLUMNS
from jmsjca.spark.staging_location import parse_location

__all__ = ["build_selector_option", "convert_option"]

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?\Z")
_SECONDS = {"millisecond": 0.001, "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0}
_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0} | {
    name + plural: seconds for name, seconds in _SECONDS.items() for plural in ("", "s")
}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)
_SIZES = {"": 0, "b": 0, **{f"{letter}{rest}": n for n, letter in enumerate("kmgt", 1) for rest in ("", "b", "ib")}}
_SIZE = re.compile(r"(\d+)\s*([a-z]*)", re.IGNORECASE)


def convert_option(name: str, text: str) -> Any:
    """Return the value of an option.

    Args:
        name: Its name, in the case of the documentation.
        text: Its text.

    Raises:
        InvalidOptionError: The text is no such value.
    """
    convert = _CONVERTERS.get(name, str)
    try:
        return convert(text)
    except ConfigurationError:
        raise
    except ValueError as error:
        wanted = _WANTED.get(convert, "a number that is not negative")
        raise InvalidOptionError(f"The option {name!r} must be {wanted}, not {text!r}.") from error


def build_selector_option(template: str, given: Mapping[str, str]) -> str:
    """Return a selector with its placeholders replaced.

    Args:
        template: The selector. Spark does not keep the case of an option's name, so it does not matter in placeholders.
        given: The values of the placeholders, by their names in lower case.

    Raises:
        InvalidOptionError: A value is missing, or the selector is invalid.
    """
    lowered = re.sub(r"\$\{[^}]*\}", lambda match: match[0].lower(), template)
    variables = {name: _value(text) for name, text in given.items()}
    try:
        selector = build_selector(lowered, variables)
        if missing := re.findall(r"\$\{([^}]*)\}", selector):
            raise InvalidOptionError(f"The selector has no value for {', '.join(missing)}: set selector.{missing[0]}.")
        Selector.parse(selector)
    except InvalidSelectorError as error:
        raise InvalidOptionError(f"The option 'selector' is invalid: {error}") from error
    return selector


def _value(text: str) -> str | int | float:
    if not _NUMBER.match(text):
        return text
    return float(text) if "." in text else int(text)


def _parse_names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise InvalidOptionError(f"The option 'destinations' must name different queues, not {text!r}.")
    return names


def _parse_columns(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    known = {column: column for column in COLUMNS}
    for name in names:
        if name not in known:
            raise InvalidOptionError(f"There is no column {name!r} {did_you_mean(name.lower(), known)}.")
    if len(set(names)) < len(names):
        raise InvalidOptionError(f"The option 'columns' names a column twice: {text!r}.")
    return names


def _parse_delimiter(text: str) -> str:
    if len(text) != 1 or text in '"\r\n':
        raise InvalidOptionError(f"The option 'delimiter' must be one character, not {text!r}.")
    return text


def _parse_size(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None or match[2].lower() not in _SIZES:
        raise ValueError(text)
    return int(match[1]) << 10 * _SIZES[match[2].lower()]


def _parse_duration(text: str) -> float:
    value = _sum_of_units(text) if re.search("[a-z]\\s*$", text, re.IGNORECASE) else float(text)
    if not 0 <= value < float("inf"):
        raise ValueError(text)
    return value


def _sum_of_units(text: str) -> float:
    if re.sub(_AMOUNT, "", text):
        raise ValueError(text)
    try:
        return sum(float(amount) * _UNITS[unit.lower()] for amount, unit in _AMOUNT.findall(text))
    except KeyError as error:
        raise ValueError(text) from error


def _parse_count(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(text)
    return int(text)


_WANTED: dict[Callable[[str], Any], str] = {
    _parse_duration: (
        "a time that is not negative, in seconds or with a unit: ms, s, min, h, d, or millisecond, second, minute,"
        " hour, day, week, as '5 seconds' or '1 minute 30 seconds'"
    ),
    _parse_size: "a whole number of bytes, or of B, KB, MB, GB or TB, each 1024 times the one before, as '64 MiB'",
}
_CONVERTERS: dict[str, Callable[[str], Any]] = {
    "credentials": parse_credentials,
    "columns": _parse_columns,
    "delimiter": _parse_delimiter,
    "destinations": _parse_names,
    "maxBytesPerBatch": _parse_size,
    "stagingLocation": parse_location,
    "partitions": _parse_count,
    "maxMessagesPerBatch": _parse_count,
    "prefetchEpochs": _parse_count,
    "retainEpochs": _parse_count,
    "receiveIdleTimeout": _parse_duration,
    "maxBatchLatency": _parse_duration,
    "batchTimeout": _parse_duration,
    "pollInterval": _parse_duration,
    "driverRetryTimeout": _parse_duration,
    "inDoubtRetention": _parse_duration,
    "timeToLive": _parse_duration,
    "batchId": _parse_count,
}
