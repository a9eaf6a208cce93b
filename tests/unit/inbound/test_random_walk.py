"""A sample of the random walks, one in each mode."""

import pytest

from tests.unit.inbound.random_walk import WALKS, WAYS, Way, walk


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_every_message_is_forwarded_once_or_moved_once(way: Way) -> None:
    problems, _ = walk(way, seed=20)
    assert problems == []


def test_tell_how_many_were_visited(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\nrandom walks of listeners {len(WAYS)} of {len(WAYS) * WALKS} (sample)")
