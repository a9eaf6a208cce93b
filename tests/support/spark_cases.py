"""The cases of a test with a real Spark: some run in every run, and all in `make torture`."""

import random
from collections.abc import Sequence
from itertools import product

import pytest

__all__ = ["SEED", "cases"]

SEED = 21


def cases(*columns: Sequence[str], keep: int = 0, seed: int = SEED) -> list[object]:
    """Return all combinations of some values. All but a sample of them have the mark of `make torture`.

    Args:
        columns: The values of each parameter.
        keep: The size of the sample.
        seed: The seed of the sample.
    """
    found = list(product(*columns))
    kept = random.Random(seed).sample(found, keep)
    return [pytest.param(*case, marks=() if case in kept else pytest.mark.torture) for case in found]
