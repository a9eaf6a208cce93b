"""Exceptions of signal handlers, raised at each moment at which Python may run one.

Python runs a signal handler at the beginning of a function and after the call of a function of C. A profile function is
called at the same moments. The beginning of ``__exit__`` is left out, as a context manager written in Python cannot
survive that. So is that of generators that are not read to their end: closing one looks the same, and runs no handler.
"""

import os
import random
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

import matrix_sample

__all__ = ["Interruption", "TimeLimitError", "each_moment"]


_NEVER = 1_000_000  # more moments than a play has
_FEW, _SHARE, _MOST = 16, 8, 40  # moments that every run visits, and one of so many of all of them, up to a number
_LEFT_OUT = {"__exit__", "<genexpr>", "rotations"}


class TimeLimitError(Exception):
    """As task queues raise it."""


class Interruption:
    """Raises at the n-th moment.

    Args:
        moment: The number of the moment, from 1.
        kind: The exception.
        places: The files, or the folders, whose code is interrupted.

    Attributes:
        left: Number of moments that are left; not above 0 once it has raised.
    """

    def __init__(self, moment: int, kind: type[BaseException], *places: str) -> None:
        self.left, self._kind, self._places = moment, kind, places

    @contextmanager
    def planted(self) -> Generator[None]:
        """Interrupt the code of the block."""
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if (event == "c_return" or (event == "call" and code.co_name not in _LEFT_OUT)) and (
            code.co_filename.startswith(self._places)
        ):
            self.left -= 1
            if self.left == 0:
                raise self._kind


def each_moment(play: Callable[[Interruption], None], kind: type[BaseException], *places: str) -> int:
    """Play with an interruption at each moment of a seeded sample; return the number of all moments.

    All are visited with JMSJCA_ALL_STEPS=1. The terminal summary shows the number of both.
    """
    never = Interruption(_NEVER, kind, *places)
    play(never)
    total = _NEVER - never.left
    moments = range(1, total + 1)
    if not os.environ.get("JMSJCA_ALL_STEPS"):
        size = min(total, _MOST, _FEW + total // _SHARE)
        moments = sorted(random.Random(f"{matrix_sample.SEED} {total}").sample(moments, size))
    for moment in moments:
        play(Interruption(moment, kind, *places))
    matrix_sample.count("moments of interruptions", len(moments), total)
    return total
