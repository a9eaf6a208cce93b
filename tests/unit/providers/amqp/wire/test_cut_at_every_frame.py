"""A connection that is cut at any frame: the reported outcome is true, and nothing is lost or duplicated."""

import random

import pytest

from tests.unit.providers.amqp.wire.cuts import CELLS, SILENT_CELLS, Run, points

SAMPLE = 20
SILENCES = 5


@pytest.mark.parametrize(("product", "job"), CELLS)
def test_whatever_was_told_of_a_unit_is_true(product, job):
    visit(product, job, SAMPLE, silent=False)


@pytest.mark.parametrize(("product", "job"), SILENT_CELLS)
def test_it_is_true_where_the_broker_falls_silent(product, job):
    visit(product, job, SILENCES, silent=True)


def visit(product, job, sample, *, silent):
    places = list(points(product, job, silent=silent))
    chosen = random.Random(f"{product} {job}").sample(places, sample)
    sprung = [Run(product, job, cut).play().sprung for cut in chosen]
    print(f"{product} {job}: visited {sum(sprung)}/{len(places)}")
    assert any(sprung)  # on a busy machine patience may end before the silence begins
