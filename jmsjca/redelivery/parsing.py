"""The language of redelivery handling: ``3:25; 5:1000; 50:move(queue:dlq.$)``.

Entries are separated by semicolons, with any blanks around these. An entry is an index, a colon, at most one blank, and
a delay in milliseconds, ``delete`` or ``move(queue|topic|same:name)``, with at most one blank on either side of the
inner colon. Indexes rise; delete and move stand last. Digits and blanks are those of ASCII, as in the original.
"""

import re
from dataclasses import dataclass
from typing import cast

from jmsjca.destinations import DestinationKind
from jmsjca.errors import InvalidRedeliveryHandlingError
from jmsjca.messages.shown import shown
from jmsjca.redelivery.actions import Action, Delay, Delete, Deliver, Move

__all__ = ["MAX_DELAY", "MAX_INDEX", "Rung", "Source", "parse"]

MAX_INDEX = 50_000_000
MAX_DELAY = 2**31 - 1  # milliseconds: 24 days and 20 hours
_MAX_LENGTH = 10_000
_BLANKS = " \t\n\r\f\v"
_LOOKUP = "lookup://"
_ENTRY = re.compile(
    r"(?P<index>\d+):\s?(?:(?P<delay>\d+)|(?P<delete>delete)"
    r"|move\((?P<kind>queue|topic|same)\s?:\s?(?P<name>[^\n\r\x85\u2028\u2029]+)\))",
    re.ASCII,
)

Rung = tuple[int, Action]
"""From which encounter on an action is in force, and the action."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the messages come from.

    Attributes:
        name: What ``$`` stands for.
        kind: What ``same`` stands for: "queue" or "topic".
    """

    name: str
    kind: str


def parse(text: str, source: Source) -> tuple[Rung, ...]:
    """Read a redelivery handling.

    Args:
        text: What was written; empty or blank for no action at all.
        source: Where the messages come from.

    Returns:
        What to do from which encounter on, with rising indexes.

    Raises:
        InvalidRedeliveryHandlingError: It is not valid; told are its text, and the element with its number from 0 on.
    """
    if len(text) > _MAX_LENGTH:
        raise InvalidRedeliveryHandlingError(
            f"The redelivery handling {shown(text)!r} has {len(text)} characters; shorten it to {_MAX_LENGTH}."
        )
    rungs: list[Rung] = []
    for number, element in enumerate(_elements(text)):
        try:
            rungs.append(_rung(element, source, rungs[-1] if rungs else (0, Deliver())))
        except InvalidRedeliveryHandlingError as error:
            raise InvalidRedeliveryHandlingError(
                f"The redelivery handling '{shown(text, 200)}' is wrong in element {number}, '{shown(element, 80)}':"
                f" {error}"
            ) from None
    return tuple(rungs)


def _elements(text: str) -> list[str]:
    """What stands between the semicolons, without the blanks around these; empty elements at the end do not count."""
    if not text.strip(_BLANKS):
        return []
    elements = text.split(";")
    elements[:-1] = [element.rstrip(_BLANKS) for element in elements[:-1]]
    elements[1:] = [element.lstrip(_BLANKS) for element in elements[1:]]
    while elements and not elements[-1]:
        elements.pop()
    return elements


def _rung(element: str, source: Source, before: Rung) -> Rung:
    match = _ENTRY.fullmatch(element)
    if match is None:
        raise InvalidRedeliveryHandlingError(
            "it must be <index>:<delay in ms>, <index>:delete or <index>:move(queue|topic|same:<name>), in lower case,"
            " with a single blank at most after a colon, and none before the first and behind the last element."
        )
    index = _number(match["index"], 1, MAX_INDEX, "index")
    _check_order(index, before)
    return index, _action(match, source)


def _check_order(index: int, before: Rung) -> None:
    if isinstance(before[1], Delete | Move):
        raise InvalidRedeliveryHandlingError("delete or move was there already; let it be the last element.")
    if index <= before[0]:
        raise InvalidRedeliveryHandlingError(f"its index must be greater than {before[0]}, that of the one before.")


def _action(match: re.Match[str], source: Source) -> Action:
    if match["delay"]:
        return Delay(_number(match["delay"], 0, MAX_DELAY, "delay"))
    if match["delete"]:
        return Delete()
    if source.kind not in ("queue", "topic"):
        raise InvalidRedeliveryHandlingError(
            f"a move needs to know whether messages come from a 'queue' or a 'topic'; this is '{shown(source.kind)}'."
        )
    kind = source.kind if match["kind"] == "same" else match["kind"]
    return Move(cast("DestinationKind", kind), _target(match["name"], source.name))


def _target(template: str, source: str) -> str:
    """Put the source's name in for each ``$``, and the path of a looked-up source in front."""
    if "$" not in template:
        return template
    path, name = "", source
    if source.startswith(_LOOKUP):
        path, slash, name = source.rpartition("/")
        path += slash
    target = path + template.replace("$", name)
    if not target:
        raise InvalidRedeliveryHandlingError("$ stands for the source's name, which is empty; name the target.")
    return target


def _number(digits: str, least: int, most: int, what: str) -> int:
    significant = digits.lstrip("0")
    # Few digits are read, as reading very many takes long.
    number = int(significant or "0") if len(significant) <= len(str(most)) else most + 1
    if not least <= number <= most:
        raise InvalidRedeliveryHandlingError(f"its {what} must be from {least} to {most}, but it is {shown(digits)}.")
    return number
