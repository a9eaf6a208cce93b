"""So many steps that every test run can take them."""

import re
import subprocess
import sys

import pytest

STEPS = 8_000
SELDOM = ("commit", "rollback", "crash", "receive", "give_back", "purge")


@pytest.mark.timeout(900)
def test_broker_is_what_the_model_says(capsys: pytest.CaptureFixture[str]) -> None:
    # In a process of its own: Hypothesis draws from the constants of each module that is loaded, so that beside
    # other tests a seed's walk would be another one.
    command = [sys.executable, "-m", "tests.model.run", "--steps", str(STEPS), "--seed", "20"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    with capsys.disabled():
        print(f"\n{done.stdout}")
    assert done.returncode == 0, done.stderr[-20_000:]
    visited = re.search(r"(\d+) steps visited", done.stdout)
    assert visited is not None
    assert int(visited[1]) >= STEPS
    counts = dict(re.findall(r"\b(\w+) (\d+)(?:, |$)", done.stdout))
    seldom = {word: int(counts.get(word, 0)) for word in SELDOM}
    assert min(seldom.values()) > STEPS / 1000, seldom
