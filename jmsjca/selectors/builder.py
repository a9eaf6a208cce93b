"""Selectors built from templates, so that a value stays a value whatever it holds."""

import os
from collections.abc import Collection, Mapping, Sequence

from jmsjca.errors import InvalidSelectorError
from jmsjca.selectors.ast import Value
from jmsjca.selectors.literals import write_literal
from jmsjca.selectors.substitution import INDEXED, NAMED, expand, item

__all__ = ["build_indexed_selector", "build_selector"]


def build_selector(
    template: str,
    variables: Mapping[str, Value] | None = None,
    *,
    selector: str | None = None,
    subscriber_name: str | None = None,
    environment: Collection[str] = (),
    raw: bool = False,
) -> str:
    """Build a selector from a template with ``${name}``, as JMSJCA does for its option ``JMSJCA.selector``.

    Within quotes a value has its quotes doubled; elsewhere it becomes a JMS literal, in quotes if it is a `str`. What
    ``%`` and ``_`` mean to LIKE is not taken from them.

    These names have a meaning: ``subscribername``; ``selector``; ``andselector``, which is ``and (<selector>)``; and
    ``selectorand``, which is ``(<selector>) and``. The latter two are empty without a selector. The selector goes in
    as text. A name without a value stays as it is written, and ``$${`` gives ``${``.

    Args:
        template: The text.
        variables: Values of other names.
        selector: The selector of the activation.
        subscriber_name: The name of the subscription; None for none, which is the empty string.
        environment: The names that may be taken from the environment of the process, where `variables` has none.
        raw: Put values in as they are, as JMSJCA does: whoever chooses a value can then change what is selected.

    Raises:
        InvalidSelectorError: A ``${`` has no ``}``, a value has no JMS literal, or the selector an unclosed string.
    """
    given = _texts(selector or "")
    values = {name: os.environ[name] for name in environment if name in os.environ} | dict(variables or {})
    values["subscribername"] = subscriber_name or ""

    def value_of(name: str, quoted: bool) -> str | None:
        if name in given:
            return given[name]
        return _written(values[name], quoted=quoted, raw=raw) if name in values else None

    return expand(template, NAMED, value_of)


def build_indexed_selector(template: str, values: Sequence[Value], *, raw: bool = False) -> str:
    """Build a selector from a template with ``{n}``, as the IBM adapter for JMS does for its ``response_selector``.

    Values are put in as `build_selector` does it; ``{{`` gives ``{``.

    Args:
        template: The text.
        values: The values; ``{1}`` is the first.
        raw: Put values in as they are, as the adapter does: whoever chooses a value can then change what is selected.

    Raises:
        InvalidSelectorError: There is no n-th value, it is None, or it has no JMS literal.
    """
    return expand(template, INDEXED, lambda number, quoted: _written(item(values, number), quoted=quoted, raw=raw))


def _texts(selector: str) -> dict[str, str]:
    if selector.count("'") % 2:  # it would turn what follows in the template inside out
        raise InvalidSelectorError(f"The selector {selector!r:.200} has an unclosed string: a quote is missing.")
    blank = not selector.strip()
    return {
        "selector": selector,
        "andselector": "" if blank else f"and ({selector})",
        "selectorand": "" if blank else f"({selector}) and",
    }


def _written(value: Value, *, quoted: bool, raw: bool) -> str:
    if raw:
        return str(value)
    literal = write_literal(value)
    if not quoted:
        return literal
    return literal[1:-1] if isinstance(value, str) else str(value).lower()  # true and false, as JMS writes them
