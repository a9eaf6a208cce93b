"""LIKE (JMS 3.1, section 3.8.1.1). The time to match any pattern is proportional to the length of the text."""

from collections.abc import Iterator

__all__ = ["ANY", "MAX_PATTERN_LENGTH", "Characters", "Pattern", "split_pattern"]

MAX_PATTERN_LENGTH = 500
"""The maximum length of a pattern, in characters."""

ANY = None
"""The wildcard ``_`` in a piece of a pattern: any single character."""

Characters = tuple[str | None, ...]


def split_pattern(pattern: str, escape: str | None) -> list[Characters]:
    """Split a pattern at each ``%``.

    Args:
        pattern: The pattern after LIKE.
        escape: The escape character, which makes the next character literal; None for no escape character.

    Returns:
        The pieces, which must occur in this order with any text between them.

    Raises:
        ValueError: The escape is not a single character, or is the last character, or the pattern is too long.
    """
    if escape is not None and len(escape) != 1:
        raise ValueError(f"ESCAPE takes one character, not {escape[:20]!r}")
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise ValueError(f"a pattern of {len(pattern)} characters is too long; the maximum is {MAX_PATTERN_LENGTH}")
    pieces: list[list[str | None]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            pieces[-1].append(_escaped(characters))
        elif character == "%":
            pieces.append([])
        else:
            pieces[-1].append(ANY if character == "_" else character)
    return [tuple(piece) for piece in pieces]


def _escaped(characters: Iterator[str]) -> str:
    for character in characters:
        return character
    raise ValueError("the pattern ends with its escape character, which escapes nothing there")


class Pattern:
    """A compiled pattern.

    Args:
        pattern: The pattern after LIKE.
        escape: The escape character; None for no escape character.

    Raises:
        ValueError: As for `split_pattern`.
    """

    __slots__ = ("_first", "_last", "_middle", "_min_length")

    def __init__(self, pattern: str, escape: str | None) -> None:
        first, *others = (_piece(piece) for piece in split_pattern(pattern, escape))
        self._first = first
        self._middle = others[:-1]
        self._last = others[-1] if others else None
        self._min_length = sum(len(piece) for piece in (first, *others))

    def matches(self, text: str) -> bool:
        """Return True if the whole text matches the pattern."""
        if self._last is None:
            return len(text) == self._min_length and self._first.matches_at(text, 0)
        if len(text) < self._min_length or not self._first.matches_at(text, 0):
            return False
        end = len(text) - len(self._last)
        return self._last.matches_at(text, end) and self._middle_matches(text, len(self._first), end)

    def _middle_matches(self, text: str, start: int, end: int) -> bool:
        # The first occurrence of each piece is sufficient: it leaves the most text for the other pieces.
        for piece in self._middle:
            found = piece.find(text, start)
            if found < 0:
                return False
            start = found + len(piece)
        return start <= end


def _piece(characters: Characters) -> "_LiteralPiece | _WildcardPiece":
    return _WildcardPiece(characters) if ANY in characters else _LiteralPiece("".join(filter(None, characters)))


class _LiteralPiece:
    """A piece without ``_``, found by `str` methods."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __len__(self) -> int:
        return len(self._text)

    def matches_at(self, text: str, start: int) -> bool:
        """Return True if the piece matches at this position."""
        return text.startswith(self._text, start)

    def find(self, text: str, start: int) -> int:
        """Return the first position of a match at or after `start`, or -1."""
        return text.find(self._text, start)


class _WildcardPiece:
    """A piece with ``_``, searched by a bit-parallel algorithm: one bit for each prefix of the piece."""

    __slots__ = ("_characters", "_goal", "_masks", "_wild")

    def __init__(self, characters: Characters) -> None:
        self._characters = characters
        self._goal = 1 << len(characters) - 1
        self._wild = sum(1 << place for place, character in enumerate(characters) if character is ANY)
        self._masks: dict[str, int] = {}
        for place, character in enumerate(characters):
            if character is not None:
                self._masks[character] = self._masks.get(character, self._wild) | 1 << place

    def __len__(self) -> int:
        return len(self._characters)

    def matches_at(self, text: str, start: int) -> bool:
        """Return True if the piece is at a position. The text must be long enough."""
        there = text[start : start + len(self._characters)]
        return all(mine is ANY or mine == its for mine, its in zip(self._characters, there, strict=True))

    def find(self, text: str, start: int) -> int:
        """Return the first position of the piece at or after `start`, or -1."""
        begun = 0
        for place in range(start, len(text)):
            begun = (begun << 1 | 1) & self._masks.get(text[place], self._wild)
            if begun & self._goal:
                return place - len(self._characters) + 1
        return -1
