"""What somebody may have meant who wrote a name that there is not."""

import difflib
from collections.abc import Mapping

__all__ = ["did_you_mean"]

_LONGEST = 100


def did_you_mean(written: str, known: Mapping[str, str]) -> str:
    """Give the nearest name, or else all of them, in parentheses.

    Args:
        written: The name, in lower case.
        known: The names that there are, by their lower case.
    """
    near = difflib.get_close_matches(written[:_LONGEST], known, 1)
    return f"(did you mean {known[near[0]]}?)" if near else f"(there are {', '.join(known.values())})"
