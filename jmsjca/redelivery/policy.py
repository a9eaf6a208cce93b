"""The redelivery policy: the actions, and their language ``3:25; 5:1000; 50:move(queue:dlq.$)``.

Entries are separated by semicolons, with any blanks around these. An entry is an index, a colon, at most one blank, and
a delay in milliseconds, ``delete`` or ``move(queue|topic|same:name)``, with at most one blank on either side of the
inner colon. Indexes rise; delete and move stand last. Digits and blanks are those of ASCII, as in the original.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Self, cast

from jmsjca.destinations import Destination, DestinationKind, destination
from jmsjca.errors import InvalidRedeliveryHandlingError, excerpt

__all__ = [
    "DEFAULT_REDELIVERY_HANDLING",
    "Action",
    "Delay",
    "Delete",
    "Deliver",
    "Move",
    "RedeliveryPolicy",
    "Source",
]


@dataclass(frozen=True, slots=True)
class Deliver:
    """Hand the message to the handler at once."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Hand the message to the handler after a time.

    Attributes:
        milliseconds: How long to wait; 0 is not at all.
    """

    milliseconds: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Acknowledge the message; the handler does not see it."""


@dataclass(frozen=True, slots=True)
class Move:
    """Send a copy of the message elsewhere and acknowledge it; the handler does not see it.

    Attributes:
        kind: "queue" or "topic".
        name: The name of the destination, with what ``$`` stood for.
    """

    kind: DestinationKind
    name: str

    @property
    def destination(self) -> Destination:
        """Where the copy goes."""
        return destination(self.name, self.kind)


Action = Deliver | Delay | Delete | Move

_MAX_INDEX = 50_000_000
_MAX_DELAY = 2**31 - 1  # milliseconds: 24 days and 20 hours
_MAX_LENGTH = 10_000
_BLANKS = " \t\n\r\f\v"
_LOOKUP = "lookup://"
_ENTRY = re.compile(
    r"(?P<index>\d+):\s?(?:(?P<delay>\d+)|(?P<delete>delete)"
    r"|move\((?P<kind>queue|topic|same)\s?:\s?(?P<name>[^\n\r\x85\u2028\u2029]+)\))",
    re.ASCII,
)

_Rule = tuple[int, Action]
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


def _parse_rules(text: str, source: Source) -> tuple[_Rule, ...]:
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
            f"The redelivery handling {excerpt(text)!r} has {len(text)} characters; shorten it to {_MAX_LENGTH}."
        )
    rules: list[_Rule] = []
    for number, element in enumerate(_split_elements(text)):
        try:
            rules.append(_parse_rule(element, source, rules[-1] if rules else (0, Deliver())))
        except InvalidRedeliveryHandlingError as error:
            raise InvalidRedeliveryHandlingError(
                f"The redelivery handling '{excerpt(text, 200)}' is wrong in element {number},"
                f" '{excerpt(element, 80)}': {error}"
            ) from None
    return tuple(rules)


def _split_elements(text: str) -> list[str]:
    """What stands between the semicolons, without the blanks around these; empty elements at the end do not count."""
    if not text.strip(_BLANKS):
        return []
    elements = text.split(";")
    elements[:-1] = [element.rstrip(_BLANKS) for element in elements[:-1]]
    elements[1:] = [element.lstrip(_BLANKS) for element in elements[1:]]
    while elements and not elements[-1]:
        elements.pop()
    return elements


def _parse_rule(element: str, source: Source, before: _Rule) -> _Rule:
    match = _ENTRY.fullmatch(element)
    if match is None:
        raise InvalidRedeliveryHandlingError(
            "it must be <index>:<delay in ms>, <index>:delete or <index>:move(queue|topic|same:<name>), in lower case,"
            " with a single blank at most after a colon, and none before the first and behind the last element."
        )
    index = _parse_number(match["index"], 1, _MAX_INDEX, "index")
    _check_order(index, before)
    return index, _action(match, source)


def _check_order(index: int, before: _Rule) -> None:
    if isinstance(before[1], Delete | Move):
        raise InvalidRedeliveryHandlingError("delete or move was there already; let it be the last element.")
    if index <= before[0]:
        raise InvalidRedeliveryHandlingError(f"its index must be greater than {before[0]}, that of the one before.")


def _action(match: re.Match[str], source: Source) -> Action:
    if match["delay"]:
        return Delay(_parse_number(match["delay"], 0, _MAX_DELAY, "delay"))
    if match["delete"]:
        return Delete()
    if source.kind not in ("queue", "topic"):
        raise InvalidRedeliveryHandlingError(
            f"a move needs to know whether messages come from a 'queue' or a 'topic'; this is '{excerpt(source.kind)}'."
        )
    kind = source.kind if match["kind"] == "same" else match["kind"]
    return Move(cast("DestinationKind", kind), _expand_target(match["name"], source.name))


def _expand_target(template: str, source: str) -> str:
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


def _parse_number(digits: str, least: int, most: int, what: str) -> int:
    significant = digits.lstrip("0")
    # Few digits are read, as reading very many takes long.
    number = int(significant or "0") if len(significant) <= len(str(most)) else most + 1
    if not least <= number <= most:
        raise InvalidRedeliveryHandlingError(f"its {what} must be from {least} to {most}, but it is {excerpt(digits)}.")
    return number


DEFAULT_REDELIVERY_HANDLING = "3:25; 5:50; 10:100; 20:1000; 50:5000"
"""What holds where nothing is said: longer and longer delays, and no message is ever given up."""


@dataclass(frozen=True, slots=True)
class RedeliveryPolicy:
    """A redelivery handling that was read: a ladder of actions. Use `parse`.

    Policies are equal if they were written alike for the same source; they can be pickled.

    Attributes:
        text: As it was written.
        source: Where the messages come from: what ``$`` and ``same`` stand for.
        rungs: From which encounter on which action is in force.
    """

    text: str
    source: Source
    rules: tuple[_Rule, ...] = field(compare=False, repr=False)

    @classmethod
    def parse(cls, text: str, destination: str = "Queue1", destination_type: str = "queue") -> Self:
        """Read a redelivery handling as ``5:1000; 10:5000; 50:move(queue:dlq.$)``.

        Args:
            text: Entries ``<index>:<action>`` with rising indexes up to 50,000,000, separated by semicolons. An action
                is a delay in milliseconds (up to 2,147,483,647), ``delete``, or ``move(queue|topic|same:<name>)``; the
                latter two stand last. An empty text is for no action at all.
            destination: Where the messages come from: its name replaces each ``$`` in the name of a move's target. Of
                ``lookup://path/name`` the name does, and the path is put in front.
            destination_type: "queue" or "topic": what ``same`` stands for.

        Raises:
            InvalidRedeliveryHandlingError: The text is not valid, or an index or a delay is out of bounds.
        """
        source = Source(destination, destination_type)
        return cls(text, source, _parse_rules(text, source))

    def __str__(self) -> str:
        return self.text

    @property
    def highest_index(self) -> int:
        """The last rung's index, 0 if there is none.

        It is reached only where the broker delivers a message one time more than that, so a maximum that the broker has
        of its own must be greater than this.
        """
        return self.rules[-1][0] if self.rules else 0

    @property
    def last_action(self) -> Action:
        """What is done in the end."""
        return self.rules[-1][1] if self.rules else Deliver()

    def action(self, n: int) -> Action:
        """Tell what to do with a message that is seen for the n-th time with its redelivered flag set.

        An action is in force until the next one's index; the last one for ever.
        """
        place = bisect_right(self.rules, n, key=_index)
        return self.rules[place - 1][1] if place else Deliver()

    def with_text(self, text: str) -> "RedeliveryPolicy":
        """Read another redelivery handling for messages of the same source.

        Raises:
            InvalidRedeliveryHandlingError: It is not valid.
        """
        return RedeliveryPolicy.parse(text, self.source.name, self.source.kind)


def _index(rule: _Rule) -> int:
    return rule[0]
