"""The syntax of selectors: the nodes of the tree, and the literals (JMS 3.1, section 3.8.1.1).

The parser simplifies the tree: ``x NOT LIKE p`` is a `Not` of a `Like`, ``x BETWEEN a AND b`` is the two comparisons
that JMS defines it by, ``-x`` is ``0 - x``, and nested ``AND`` or ``OR`` are one node.
"""

import math
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from jmsjca.errors import InvalidSelectorError

__all__ = [
    "LONG",
    "And",
    "Arithmetic",
    "Comparison",
    "Expression",
    "Identifier",
    "In",
    "IsNull",
    "Like",
    "Literal",
    "Not",
    "Or",
    "Value",
    "children",
    "read_integer",
    "read_list",
    "read_real",
    "read_string",
    "write_literal",
]

Value = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal value."""

    value: Value


@dataclass(frozen=True, slots=True)
class Identifier:
    """The value of a header or a property; also a condition, if it is a boolean."""

    name: str


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``left operator right`` with one of ``+ - * /``."""

    operator: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Comparison:
    """``left operator right`` with one of ``= <> < <= > >=``."""

    operator: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Like:
    """``name LIKE pattern [ESCAPE escape]``."""

    name: str
    pattern: str
    escape: str | None


@dataclass(frozen=True, slots=True)
class In:
    """``name IN (values)``."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    """``name IS NULL``."""

    name: str


@dataclass(frozen=True, slots=True)
class Not:
    """``NOT operand``."""

    operand: "Expression"


@dataclass(frozen=True, slots=True)
class And:
    """Two operands or more, joined by AND."""

    operands: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Two operands or more, joined by OR."""

    operands: tuple["Expression", ...]


Expression = Literal | Identifier | Arithmetic | Comparison | Like | In | IsNull | Not | And | Or


def children(node: Expression) -> Iterator[Expression]:
    """Yield the child nodes of a node."""
    match node:
        case And(operands) | Or(operands):
            yield from operands
        case Arithmetic(_, left, right) | Comparison(_, left, right):
            yield left
            yield right
        case Not(operand):
            yield operand
        case _:
            pass


LONG = 1 << 63
"""The range of exact numbers is -LONG to LONG - 1, as in Java's long."""

_STRINGS = re.compile(r"'((?:[^']|'')*+)'")


def read_string(text: str) -> str:
    """Return the value of a string literal such as ``'it''s'``."""
    return text[1:-1].replace("''", "'")


def read_list(text: str) -> tuple[str, ...]:
    """Return the strings of a list such as ``('a', 'b')``."""
    return tuple(inner.replace("''", "'") for inner in _STRINGS.findall(text))


def read_integer(text: str) -> int:
    """Return the value of a decimal, octal (``017``) or hexadecimal (``0xF``) literal, with or without ``L``.

    Octal and hexadecimal literals are the 64 bits of a long, as in Java: ``0xFFFFFFFFFFFFFFFF`` is -1. The decimal
    value `LONG` is accepted here, because a minus sign may precede it. The parser checks that later.

    Raises:
        ValueError: The literal is not an octal number, or does not fit 64 bits.
    """
    digits = text.rstrip("lL").lower()
    if digits.startswith("0"):
        number = _parse_bits(digits)
        return number - 2 * LONG if LONG <= number < 2 * LONG else _check_range(number, digits)
    return _check_range(int(digits[:20]), digits)


def read_real(text: str) -> float:
    """Return the value of a literal with a point, an exponent or a suffix; ``f`` rounds to single precision.

    Raises:
        ValueError: The value exceeds the largest number of its type.
    """
    number = float(text.rstrip("fFdD"))
    if text[-1] in "fF":
        number = _to_single_precision(number)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is larger than the largest number of its type")
    return number


def write_literal(value: Value) -> str:
    """Return the literal of a value; negative numbers are in parentheses.

    Raises:
        InvalidSelectorError: The value has no literal: it is not a JMS value, out of range, infinite or NaN.
    """
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if not _is_number(value):
        raise InvalidSelectorError(f"{value!r:.100} cannot be used in a selector: there is no JMS literal for it.")
    number = int(value) if isinstance(value, int) else float(value)  # drops the subclass of its JMS type
    return f"({number})" if math.copysign(1, number) < 0 else str(number)


def _is_number(value: object) -> bool:
    if isinstance(value, int):
        return -LONG <= value < LONG
    return isinstance(value, float) and math.isfinite(value)


def _parse_bits(digits: str) -> int:
    try:
        return int(digits, 16 if digits.startswith("0x") else 8)
    except ValueError:
        raise ValueError(f"{digits[:40]} begins with 0 and is octal, but has the digit 8 or 9") from None


def _check_range(number: int, digits: str) -> int:
    if number > LONG:
        raise ValueError(f"{digits[:40]} does not fit the 64 bits of a long; a double has a point: {digits[:40]}.0")
    return number


def _to_single_precision(number: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return math.inf
