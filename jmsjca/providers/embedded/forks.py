"""How often the process was forked on its way here: to ask the system for its id at every step would be dear."""

import os

__all__ = ["generation"]

_generation = 0


def generation() -> int:
    """A number that is another one in every child process."""
    return _generation


def _begin_another() -> None:
    global _generation  # noqa: PLW0603  # one per process is what it is about
    _generation += 1


os.register_at_fork(after_in_child=_begin_another)
