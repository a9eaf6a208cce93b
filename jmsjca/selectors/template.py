"""Selector templates: placeholders ``${name}`` as in JMSJCA, and ``{n}`` as in the IBM adapter for JMS.

Placeholders are replaced in a single pass: inserted text is not searched for placeholders. Selectors are built so that
a value cannot change their structure.
"""

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from jmsjca.arguments import did_you_mean
from jmsjca.errors import InvalidSelectorError
from jmsjca.selectors.selector import Selector
from jmsjca.selectors.syntax import Value, write_literal

__all__ = [
    "INDEXED",
    "build_indexed_selector",
    "build_selector",
    "check_built_selector",
    "check_variables",
    "item",
    "substitute",
    "substitute_indexed",
]

T = TypeVar("T")

_PREDEFINED = ("subscribername", "selector", "andselector", "selectorand")

_NAMED = re.compile(r"\$(?P<escaped>\$\{)|\$\{(?P<key>[^}]*)\}|(?P<open>\$\{)")
"""``${key}``; ``$${`` is a literal ``${``."""

INDEXED = re.compile(r"\{(?P<escaped>\{)|\{(?P<key>[0-9]+)\}|(?P<open>(?!))")
"""``{key}`` with a number as key; ``{{`` is a literal ``{``."""


def substitute(template: str, variables: Mapping[str, object]) -> str:
    """Replace each ``${name}`` by the text of a value.

    A placeholder without a value is left unchanged; ``$${`` becomes ``${``; other ``$`` are left unchanged.

    Args:
        template: The text.
        variables: The values by name; `str` of a value is inserted.

    Raises:
        InvalidSelectorError: A ``${`` has no ``}``.
    """
    return _expand(template, _NAMED, lambda name, _: str(variables[name]) if name in variables else None)


def substitute_indexed(template: str, values: Sequence[object]) -> str:
    """Replace each ``{n}`` by the text of the n-th value; ``{1}`` is the first.

    ``{{`` becomes ``{``; other braces are left unchanged.

    Args:
        template: The text.
        values: The values; `str` of a value is inserted.

    Raises:
        InvalidSelectorError: There is no n-th value, or it is None.
    """
    return _expand(template, INDEXED, lambda number, _: str(item(values, number)))


def _expand(template: str, placeholder: re.Pattern[str], value_of: Callable[[str, bool], str | None]) -> str:
    """Replace placeholders.

    Args:
        template: The text.
        placeholder: The syntax: `_NAMED` or `INDEXED`.
        value_of: Returns the text for a key. Its second argument is True within single quotes. If it returns None, the
            placeholder is left unchanged.

    Raises:
        InvalidSelectorError: A placeholder has no closing brace.
    """
    parts: list[str] = []
    done = quotes = 0
    for match in placeholder.finditer(template):
        if match["open"]:
            raise InvalidSelectorError(
                f"The placeholder at position {match.start() + 1} of {template!r:.200} has no closing brace;"
                f" a {match['open']} that means nothing is written ${match['open']}."
            )
        before = quotes + template.count("'", done, match.start())
        text = match["escaped"] or value_of(match["key"], before % 2 == 1)
        if text is not None:
            parts += (template[done : match.start()], text)
            done, quotes = match.end(), before
    return "".join(parts) + template[done:]


def item(values: Sequence[T], number: str) -> T:
    """Return the value that a number in a template refers to.

    Raises:
        InvalidSelectorError: There is no such value, or it is None.
    """
    index = int(number[:9]) - 1
    if not 0 <= index < len(values) or values[index] is None:
        raise InvalidSelectorError(
            f"There is no value for {{{number:.20}}}: {len(values)} are given, the first is {{1}}."
        )
    return values[index]


def build_selector(
    template: str,
    variables: Mapping[str, Value] | None = None,
    *,
    selector: str | None = None,
    subscriber_name: str | None = None,
    environment: Collection[str] = (),
    raw: bool = False,
) -> str:
    """Return a selector built from a template with ``${name}``, as in JMSJCA's option ``JMSJCA.selector``.

    Within quotes, the quotes of a value are doubled; elsewhere a value becomes a JMS literal, in quotes if it is a
    `str`. ``%`` and ``_`` remain wildcards of LIKE.

    Predefined names: ``subscribername``; ``selector``; ``andselector``, which is ``and (<selector>)``; and
    ``selectorand``, which is ``(<selector>) and``. The latter two are empty without a selector. The selector is
    inserted as text. A placeholder without a value is left unchanged, and ``$${`` becomes ``${``.

    Args:
        template: The text.
        variables: The values of other names.
        selector: The selector of the activation.
        subscriber_name: The name of the subscription; None inserts the empty string.
        environment: The names of environment variables that may be used if `variables` lacks them.
        raw: Insert values as plain text, as JMSJCA does. A value can then change the meaning of the selector.

    Raises:
        InvalidSelectorError: A ``${`` has no ``}``, a value has no JMS literal, or the selector has an unclosed string.
    """
    given = _selector_variables(selector or "")
    values = {name: os.environ[name] for name in environment if name in os.environ} | dict(variables or {})
    values["subscribername"] = subscriber_name or ""

    def _value_of(name: str, quoted: bool) -> str | None:
        if name in given:
            return given[name]
        return _literal(values[name], quoted=quoted, raw=raw) if name in values else None

    return _expand(template, _NAMED, _value_of)


def check_variables(variables: Mapping[str, Value]) -> None:
    """Check names and values for `build_selector`.

    Raises:
        InvalidSelectorError: A name is predefined or cannot be written as ``${name}``, or a value has no JMS literal.
    """
    for name, value in variables.items():
        if name in _PREDEFINED:
            raise InvalidSelectorError(f"${{{name}}} has a value already: choose another name.")
        if not name or "}" in name:
            raise InvalidSelectorError(f"{name!r:.100} cannot be the name of a variable: use a text without }}.")
        write_literal(value)


def check_built_selector(selector: str, variables: Mapping[str, Value]) -> None:
    """Check that a selector parses after its placeholders are replaced.

    Args:
        selector: The result of `build_selector`.
        variables: The values that it was given.

    Raises:
        InvalidSelectorError: It does not parse; the message names a placeholder that has no value, if any.
    """
    try:
        Selector.parse(selector)
    except InvalidSelectorError as error:
        left = next((each for each in _NAMED.finditer(selector) if each["key"]), None)
        if left is None:
            raise
        known = {name.lower(): f"${{{name}}}" for name in (*variables, *_PREDEFINED)}
        raise InvalidSelectorError(
            f"{left[0]:.100} has no value {did_you_mean(left['key'].lower(), known)}. selector_variables names "
            f"values. {error}"
        ) from error


def build_indexed_selector(template: str, values: Sequence[Value], *, raw: bool = False) -> str:
    """Return a selector built from a template with ``{n}``, as in the IBM adapter's ``response_selector``.

    Values are inserted like in `build_selector`; ``{{`` becomes ``{``.

    Args:
        template: The text.
        values: The values; ``{1}`` is the first.
        raw: Insert values as plain text, as the adapter does. A value can then change the meaning of the selector.

    Raises:
        InvalidSelectorError: There is no n-th value, it is None, or it has no JMS literal.
    """
    return _expand(template, INDEXED, lambda number, quoted: _literal(item(values, number), quoted=quoted, raw=raw))


def _selector_variables(selector: str) -> dict[str, str]:
    if selector.count("'") % 2:  # it would invert the quoting of the rest of the template
        raise InvalidSelectorError(f"The selector {selector!r:.200} has an unclosed string: a quote is missing.")
    blank = not selector.strip()
    return {
        "selector": selector,
        "andselector": "" if blank else f"and ({selector})",
        "selectorand": "" if blank else f"({selector}) and",
    }


def _literal(value: Value, *, quoted: bool, raw: bool) -> str:
    if raw:
        return str(value)
    literal = write_literal(value)
    if not quoted:
        return literal
    return literal[1:-1] if isinstance(value, str) else str(value).lower()  # true and false, as in JMS
