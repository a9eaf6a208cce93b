"""The redelivery policy: its actions, their language ``3:25; 5:1000; 50:move(queue:dlq.$)``, and its description.

Entries are separated by semicolons, with optional blanks around them. An entry is an index, a colon, at most one blank,
and a delay in milliseconds, ``delete`` or ``move(queue|topic|same:name)``, with at most one blank on either side of the
inner colon. Indexes must increase; delete and move must be last. Digits and blanks are ASCII only, as in the original.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
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
    "redelivery_ladder",
]


@dataclass(frozen=True, slots=True)
class Deliver:
    """Deliver the message to the handler immediately."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Deliver the message to the handler after a delay.

    Attributes:
        milliseconds: The delay; 0 means none.
    """

    milliseconds: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Acknowledge the message without delivering it to the handler."""


@dataclass(frozen=True, slots=True)
class Move:
    """Send a copy of the message to another destination and acknowledge it, without delivering it to the handler.

    Attributes:
        kind: "queue" or "topic".
        name: The name of the destination, with ``$`` replaced.
    """

    kind: DestinationKind
    name: str

    @property
    def destination(self) -> Destination:
        """The destination of the copy."""
        return destination(self.name, self.kind)


Action = Deliver | Delay | Delete | Move

Resolve = Callable[[str, DestinationKind], Destination]
"""Returns the destination of a name and a kind."""

_MAX_INDEX = 50_000_000
_MAX_DELAY = 2**31 - 1  # milliseconds: 24 days and 20 hours
_MAX_LENGTH = 10_000
_BLANKS = " \t\n\r\f\v"
_LOOKUP = "lookup://"
_ENTRY = re.compile(
    r"(?P<index>\d+):\s?(?:(?P<delay>\d+)(?P<seconds>s)?|(?P<delete>delete)"
    r"|move\((?P<kind>queue|topic|same)\s?:\s?(?P<name>[^\n\r\x85\u2028\u2029]+)\))",
    re.ASCII,
)

_Rule = tuple[int, Action]
"""An action, and the first redelivery that it applies to."""


@dataclass(frozen=True, slots=True)
class Source:
    """The destination that messages are received from.

    Attributes:
        name: The name, which replaces ``$``.
        kind: "queue" or "topic", which replaces ``same``.
    """

    name: str
    kind: str


def _parse_rules(text: str, source: Source) -> tuple[_Rule, ...]:
    """Return the rules of a redelivery handling, with increasing indexes.

    Args:
        text: The redelivery handling; empty or blank for no rules.
        source: The destination that messages are received from.

    Raises:
        InvalidRedeliveryHandlingError: The text is invalid. The message has the text, the invalid element, and its
            number, counted from 0.
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
    """Return the elements between semicolons, without surrounding blanks and without empty elements at the end."""
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
            "it must be <index>:<delay in ms>, <index>:<delay>s, <index>:delete or"
            " <index>:move(queue|topic|same:<name>), in lower case, with at most one blank after a colon, and no blank"
            " before the first or after the last element."
        )
    index = _parse_number(match["index"], 1, _MAX_INDEX, "index")
    if isinstance(before[1], Delete | Move):
        raise InvalidRedeliveryHandlingError("an earlier element is delete or move, which must be the last one.")
    if index <= before[0]:
        raise InvalidRedeliveryHandlingError(f"its index must be greater than {before[0]}, the index before it.")
    return index, _action(match, source)


def _action(match: re.Match[str], source: Source) -> Action:
    if match["delay"]:
        unit = 1000 if match["seconds"] else 1
        return Delay(_parse_number(match["delay"], 0, _MAX_DELAY // unit, "delay") * unit)
    if match["delete"]:
        return Delete()
    if source.kind not in ("queue", "topic"):
        raise InvalidRedeliveryHandlingError(
            f"a move needs to know whether messages come from a 'queue' or a 'topic'; this is '{excerpt(source.kind)}'."
        )
    kind = source.kind if match["kind"] == "same" else match["kind"]
    return Move(cast("DestinationKind", kind), _expand_target(match["name"], source.name))


def _expand_target(template: str, source: str) -> str:
    """Replace each ``$`` by the source's name, and prefix the path of a ``lookup://`` source."""
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
    # Long numbers are not converted, because the conversion of very many digits is slow.
    number = int(significant or "0") if len(significant) <= len(str(most)) else most + 1
    if not least <= number <= most:
        raise InvalidRedeliveryHandlingError(f"its {what} must be from {least} to {most}, but it is {excerpt(digits)}.")
    return number


DEFAULT_REDELIVERY_HANDLING = "3:25; 5:50; 10:100; 20:1000; 50:5000"
"""The default redelivery handling: increasing delays, and no message is ever deleted or moved."""


@dataclass(frozen=True, slots=True)
class RedeliveryPolicy:
    """A parsed redelivery handling: actions by the number of redeliveries. Use `parse`.

    Policies with the same text and source are equal; policies can be pickled.

    Attributes:
        text: The text of the redelivery handling.
        source: The destination that messages are received from: it replaces ``$`` and ``same``.
        rules: The actions, each with the first redelivery that it applies to.
        resolve: Resolves the names of move targets, see `resolving`; None uses them as they are.
    """

    text: str
    source: Source
    rules: tuple[_Rule, ...] = field(compare=False, repr=False)
    resolve: Resolve | None = field(default=None, compare=False, repr=False)

    @classmethod
    def parse(cls, text: str, destination: str = "Queue1", destination_type: str = "queue") -> Self:
        """Return the policy of a redelivery handling such as ``5:1000; 10:5000; 50:move(queue:dlq.$)``.

        Args:
            text: Entries ``<index>:<action>`` with increasing indexes up to 50,000,000, separated by semicolons. An
                action is a delay in milliseconds (up to 2,147,483,647) or in seconds, as ``2s``; ``delete``; or
                ``move(queue|topic|same:<name>)``. The latter two must be last. An empty text has no actions.
            destination: The name of the source destination, which replaces each ``$`` in the name of a move's target.
                For ``lookup://path/name`` that is the last part, and the target gets the path as prefix.
            destination_type: "queue" or "topic", which replaces ``same``.

        Raises:
            InvalidRedeliveryHandlingError: The text is not valid, or an index or a delay is out of bounds.
        """
        source = Source(destination, destination_type)
        return cls(text, source, _parse_rules(text, source))

    def __str__(self) -> str:
        return self.text

    @property
    def highest_index(self) -> int:
        """The index of the last rule; 0 without rules.

        A message reaches it only if the broker delivers the message one time more than the index. The broker's own
        maximum of deliveries must therefore be greater.
        """
        return self.rules[-1][0] if self.rules else 0

    @property
    def last_action(self) -> Action:
        """The action of the last rule; `Deliver` without rules."""
        return self.rules[-1][1] if self.rules else Deliver()

    @property
    def dead_letter_action(self) -> Delete | Move:
        """The action for a rejected message: the last rule's `Move`, or `Delete` if the last rule does not move."""
        last = self.last_action
        return last if isinstance(last, Move) else Delete()

    def action(self, n: int) -> Action:
        """Return the action for the n-th redelivery of a message.

        An action applies up to the index of the next action; the last one applies to all later redeliveries.
        """
        place = bisect_right(self.rules, n, key=_index)
        return self.rules[place - 1][1] if place else Deliver()

    def with_text(self, text: str) -> "RedeliveryPolicy":
        """Return the policy of another redelivery handling for messages of the same source.

        Raises:
            InvalidRedeliveryHandlingError: The text cannot be parsed.
        """
        parsed = RedeliveryPolicy.parse(text, self.source.name, self.source.kind)
        return parsed.resolving(self.resolve) if self.resolve else parsed

    def resolving(self, resolve: Resolve) -> "RedeliveryPolicy":
        """Return the policy with move targets resolved by a function. `with_text` uses the function also.

        Args:
            resolve: Returns the destination of a name and a kind, for instance of ``lookup://jms/dlq`` and "queue".

        Raises:
            JMSError: A name cannot be resolved.
        """
        rules = tuple((index, _resolved(action, resolve)) for index, action in self.rules)
        return replace(self, rules=rules, resolve=resolve)


def _resolved(action: Action, resolve: Resolve) -> Action:
    return Move(action.kind, resolve(action.name, action.kind).name) if isinstance(action, Move) else action


def _index(rule: _Rule) -> int:
    return rule[0]


def redelivery_ladder(policy: RedeliveryPolicy) -> Iterator[dict[str, object]]:
    """Yield one row for each action of a policy, with the redeliveries that it applies to."""
    rules = [(0, policy.action(0)), *policy.rules]
    ends = [str(index - 1) for index, _ in rules[1:]] + [""]
    for (start, action), end in zip(rules, ends, strict=True):
        span = str(start) if end == str(start) else f"{start}-{end}" if end else f"{start} and later"
        yield {"redelivery": span, "action": _described(action)}


def _described(action: Action) -> str:
    if isinstance(action, Deliver):
        return "deliver at once"
    if isinstance(action, Delay):
        return f"deliver after {action.milliseconds} ms"
    return f"move to {action.destination}" if isinstance(action, Move) else "delete"
