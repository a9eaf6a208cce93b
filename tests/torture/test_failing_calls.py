"""Calls of jmsjca that fail after a handler has failed: some of each mode, or all with ``JMSJCA_ALL_STEPS=1``."""

import os
import random

import pytest

from jmsjca import reconnection
from jmsjca.inbound import handler, lifecycle
from tests.torture.failing_calls import CONNECTORS, LISTENERS, Visit, visit

SAMPLE, FURTHEST = 5, 60  # calls of a mode, all of which have more


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lack of memory is retried at once, and is not told by a thread that ends."""
    monkeypatch.setattr(reconnection, "_BACKOFF", (0,))
    monkeypatch.setattr(lifecycle, "_MEMORY_PAUSE", 0)
    monkeypatch.setattr(handler, "_POLL_INTERVAL", 0.05)


@pytest.mark.timeout(3600)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the end of a generator may fail
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # a coroutine that was made is not awaited
@pytest.mark.parametrize("mode", [*LISTENERS, *CONNECTORS])
def test_no_failed_handler_is_committed_if_a_later_call_fails(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    visits: list[Visit] = []
    if os.environ.get("JMSJCA_ALL_STEPS"):
        while not visits or visits[-1].fired:
            visits.append(visit(mode, len(visits) + 1))
        total = f"{len(visits) - 1}"
    else:
        visits += [visit(mode, n) for n in sorted(random.Random(mode).sample(range(1, FURTHEST), SAMPLE))]
        total = f"more than {FURTHEST}"
        assert all(each.fired for each in visits)
    with capsys.disabled():
        print(f"\n{mode}: {sum(each.fired for each in visits)} calls failed / {total}")
    assert [each for each in visits if each.wrong] == []
