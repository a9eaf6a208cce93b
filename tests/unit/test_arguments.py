"""Constraints of arguments: the accepted values, and the errors for all others."""

import math
from types import NoneType

import pytest

from jmsjca.arguments import CALLABLE, CLASS, FLAG, PLAIN_FUNCTION, SECRET_OR_NONE, TIMEOUT, Constraint, check
from jmsjca.errors import ArgumentTypeError, ConfigurationError, InvalidArgumentError, JMSError

LEVEL = Constraint[int]("a whole number from 0 to 9", int, within=(0, 9), error=ConfigurationError)


async def _coroutine() -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("constraint", "value"),
    [
        (LEVEL, 0),
        (LEVEL, 9),
        (TIMEOUT, None),
        (TIMEOUT, 0.5),
        (FLAG, True),
        (SECRET_OR_NONE, None),
        (CALLABLE, print),
        (CLASS, int | str),
        (PLAIN_FUNCTION, print),
        (Constraint[object]("True or a number", (bool, int)), True),
        (Constraint[object]("an even number or None", (int, NoneType), fits=lambda number: number % 2 == 0), None),
    ],
)
def test_accepted_values_are_returned(constraint: Constraint[object], value: object) -> None:
    assert constraint("level", value) is value


@pytest.mark.parametrize(
    ("constraint", "value", "error", "text"),
    [
        (LEVEL, True, ConfigurationError, "level must be a whole number from 0 to 9, not True (bool)."),
        (LEVEL, 10, ConfigurationError, "level must be a whole number from 0 to 9, not 10 (int)."),
        (LEVEL, _coroutine, ConfigurationError, "level must be a whole number from 0 to 9, not <function _cor"),
        (TIMEOUT, "1", ArgumentTypeError, "as a number, or None to wait forever, not '1' (str)."),
        (TIMEOUT, math.nan, InvalidArgumentError, "as a number, or None to wait forever, not nan (float)."),
        (TIMEOUT, False, ArgumentTypeError, "as a number, or None to wait forever, not False (bool)."),
        (FLAG, 1, ArgumentTypeError, "level must be True or False, not 1 (int)."),
        (SECRET_OR_NONE, b"hidden", ArgumentTypeError, "level must be a str or None, not bytes."),
        (CALLABLE, None, ArgumentTypeError, "level must be a function, not None (NoneType)."),
        (CALLABLE, 5, ArgumentTypeError, "level must be a function, not 5 (int)."),
        (CLASS, "int", ArgumentTypeError, "level must be a class such as str, bytes, dict or list, not 'int' (str)."),
        (PLAIN_FUNCTION, _coroutine, ArgumentTypeError, "would not run it. Declare it with 'def', without 'yield'."),
    ],
)
def test_errors_have_value_and_remedy(
    constraint: Constraint[object], value: object, error: type[JMSError], text: str
) -> None:
    with pytest.raises(error) as refused:
        constraint("level", value)
    assert type(refused.value) is error
    assert text in str(refused.value)


def test_a_table_checks_each_argument_of_a_call() -> None:
    table = {"level": LEVEL, "timeout": TIMEOUT}
    check(table, level=4, timeout=None)
    with pytest.raises(ArgumentTypeError, match="timeout must be"):
        check(table, level=4, timeout="1")
