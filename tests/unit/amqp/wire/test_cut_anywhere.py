"""A connection that is cut at any frame: what was told is true, and nothing is lost or delivered twice."""

import random

import pytest

from tests.unit.amqp.wire.cuts import CELLS, Run, points

SAMPLE = 20


@pytest.mark.parametrize(("product", "job"), CELLS)
def test_whatever_was_told_of_a_unit_is_true(product, job):
    places = list(points(product, job))
    chosen = random.Random(f"{product} {job}").sample(places, SAMPLE)
    sprung = [Run(product, job, cut).play().sprung for cut in chosen]
    print(f"{product} {job}: visited {sum(sprung)}/{len(places)} cuts")
    assert sum(sprung) > SAMPLE / 2
