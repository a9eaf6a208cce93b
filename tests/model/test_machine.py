"""So many steps that every test run can take them."""

import pytest

from tests.model.run import walk

STEPS = 50_000


@pytest.mark.timeout(900)
def test_broker_is_what_the_model_says(capsys: pytest.CaptureFixture[str]) -> None:
    report = walk(STEPS, start=20)
    with capsys.disabled():
        print(f"\n{report}")
    assert report.visited.total() >= STEPS
    seldom = {word: report.done[word] for word in ("commit", "rollback", "crash", "receive", "give_back", "purge")}
    assert min(seldom.values()) > STEPS / 1000, seldom
