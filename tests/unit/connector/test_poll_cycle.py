"""The poll cycle reads one message per destination and turn."""

import pytest

from jmsjca.connector.outcomes import DeliveryOutcome, ReturnCode
from jmsjca.connector.polling import poll_cycle


def _poll(backlogs, quantity, outcomes=()):
    """Poll destinations with the given backlogs; return the code, the reads in order and the remaining backlogs."""
    reads, remaining, planned = [], dict(backlogs), iter(outcomes)

    def process_next(destination, turns):
        assert turns == quantity - (len(reads) // len(backlogs))
        reads.append(destination)
        if not remaining[destination]:
            return None
        remaining[destination] -= 1
        return next(planned, DeliveryOutcome.SUCCEED)

    return poll_cycle(list(backlogs), quantity, process_next), reads, remaining


def test_destinations_take_turns_and_an_empty_one_is_read_again():
    code, reads, remaining = _poll({"A": 2, "B": 1, "C": 5}, 2)
    assert (code, reads, remaining) == (ReturnCode.SUCCEED, [*"ABCABC"], {"A": 0, "B": 0, "C": 3})


def test_cycle_ends_after_a_turn_without_a_message():
    assert _poll({"A": 1, "B": 0}, 500) == (ReturnCode.SUCCEED, [*"ABAB"], {"A": 0, "B": 0})


@pytest.mark.parametrize("outcome", [DeliveryOutcome.FAIL, DeliveryOutcome.NO_SUBSCRIPTION_FOUND])
def test_failed_event_does_not_end_the_cycle(outcome):
    assert _poll({"A": 2, "B": 1}, 2, [outcome]) == (ReturnCode.SUCCEED, [*"ABAB"], {"A": 0, "B": 0})


def test_inactive_connector_ends_the_cycle_at_once():
    outcomes = [DeliveryOutcome.SUCCEED, DeliveryOutcome.CONNECTOR_NOT_ACTIVE]
    assert _poll({"A": 2, "B": 2}, 2, outcomes) == (ReturnCode.APPRESPONSETIMEOUT, [*"AB"], {"A": 1, "B": 1})
