"""Batches that wait for acknowledgements."""

import pytest

from jmsjca import Outcome
from tests.unit.delivering.stage import Performance, depth, endpoint_of, put, terms

PATIENCE = 30


@pytest.mark.parametrize("mode", ["sync", "cc"])
def test_a_handler_that_fails_at_the_end_of_a_batch_rolls_it_back(connected, recorder, mode):
    """Nobody can acknowledge the end of that batch any more; it must not wait for that."""
    link = connected()
    failures = [ValueError("at the end")]

    def handler(message):
        if message.end_of_batch and failures:
            raise failures.pop()
        message.acknowledge()

    performance = Performance(
        endpoint_of(handler, terms(mode, hold_until_ack=True, batch_size=2, pool_size=1), recorder), link
    )
    put(link, "a")
    recorder.await_outcome(Outcome.ROLLED_BACK)
    recorder.await_outcome(Outcome.COMMITTED)
    performance.stop()
    assert depth(link).total == 0
