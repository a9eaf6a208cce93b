"""Feedback codes of WebSphere MQ: numbers in responses and reports, and the results that they stand for."""

import re
from collections.abc import Mapping

from jmsjca.connector.return_codes import ReturnCode
from jmsjca.errors import ConfigurationError, excerpt

__all__ = ["FeedbackCodes", "result_of"]

MQFB_PAN, MQFB_NAN = 275, 276
MQFB_APPL_FIRST, _APPL_LAST = 65536, 999_999_999
_NAMES = {"MQFB_PAN": MQFB_PAN, "MQFB_NAN": MQFB_NAN, "MQFB_APPL_FIRST": MQFB_APPL_FIRST, "MQFB_APPL_LAST": _APPL_LAST}
_CODE = re.compile(r"\s*(\w+)\s*(?:\+\s*(\d{1,9})\s*)?")
_OF_APPLICATIONS = (
    ReturnCode.SUCCEED,
    ReturnCode.FAIL,
    ReturnCode.VALCHANGE,
    ReturnCode.VALDUPES,
    ReturnCode.MULTIPLE_HITS,
    ReturnCode.FAIL_RETRIEVE_BY_CONTENT,
    ReturnCode.BO_DOES_NOT_EXIST,
    ReturnCode.UNABLE_TO_LOGIN,
    ReturnCode.APPRESPONSETIMEOUT,
)
_DEFAULTS = {
    MQFB_PAN: ReturnCode.SUCCEED,
    MQFB_NAN: ReturnCode.FAIL,
    **{MQFB_APPL_FIRST + offset: code for offset, code in enumerate(_OF_APPLICATIONS)},
}


def result_of(name: str) -> ReturnCode | None:
    """Return the result with a name, in any case; ``SUCCESS`` is the same as ``SUCCEED``. None if it is unknown."""
    text = name.strip().upper().replace("APP_RESPONSE_TIMEOUT", "APPRESPONSETIMEOUT")
    return ReturnCode.SUCCEED if text == "SUCCESS" else ReturnCode.__members__.get(text)


class FeedbackCodes:
    """The results by feedback code.

    By default ``MQFB_PAN`` is SUCCEED, ``MQFB_NAN`` is FAIL, and the codes from ``MQFB_APPL_FIRST`` are SUCCEED, FAIL,
    VALCHANGE, VALDUPES, MULTIPLE_HITS, FAIL_RETRIEVE_BY_CONTENT, BO_DOES_NOT_EXIST, UNABLE_TO_LOGIN and
    APPRESPONSETIMEOUT.

    Args:
        changes: Results by code: a number, or a name of WebSphere MQ as in ``MQFB_APPL_FIRST + 1``.

    Raises:
        ConfigurationError: A code or a result is unknown.
    """

    def __init__(self, changes: Mapping[str, str]) -> None:
        self._results = _DEFAULTS | {_code(name): _checked(name, value) for name, value in changes.items()}

    def result(self, value: object) -> ReturnCode | None:
        """Return the result for the value of a property: a name or a code; None if it is neither.

        Args:
            value: The value; None if the property is not set.
        """
        if isinstance(value, bool) or not isinstance(value, str | int):
            return None
        if isinstance(value, int) or value.strip().isdecimal():
            return self._results.get(int(value))
        return result_of(value)

    def code(self, result: ReturnCode) -> int | None:
        """Return the code of applications (from ``MQFB_APPL_FIRST``) for a result; None for a result without a code."""
        found = (code for code, each in self._results.items() if each is result and code >= MQFB_APPL_FIRST)
        return min(found, default=None)


def _code(text: str) -> int:
    match = _CODE.fullmatch(text)
    base = None if match is None else _NAMES.get(match[1], int(match[1]) if match[1].isdecimal() else None)
    if match is None or base is None:
        raise ConfigurationError(f"{excerpt(text)!r} is no feedback code: a number, or {', '.join(_NAMES)} + n.")
    return base + int(match[2] or 0)


def _checked(code: str, name: str) -> ReturnCode:
    result = result_of(name)
    if result is None:
        known = ", ".join(ReturnCode)
        raise ConfigurationError(f"Feedback code {excerpt(code)} has the result {excerpt(name)!r}; there are {known}.")
    return result
