"""The syntax tree of a selector: immutable nodes.

The parser simplifies it: ``x NOT LIKE p`` is a `Not` of a `Like`, ``x BETWEEN a AND b`` is the two comparisons that JMS
defines it by, ``-x`` is ``0 - x``, and nested ``AND`` or ``OR`` are one node.
"""

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = [
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
