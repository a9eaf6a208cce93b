"""A distributed subscription of two processes over one file."""

from tests.unit.delivering.failing_over import END, kill_one_of_two


def test_nothing_is_lost_or_doubled_when_the_process_with_the_subscription_is_killed(connected_file, broker_file):
    done, more = kill_one_of_two(f"embedded://{broker_file}", connected_file(), "x")
    assert sorted(done) == list(range(200))
    assert more == [END, END]
