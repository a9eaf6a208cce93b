"""The parts of the demo that need no Spark: events, progress, and killed processes."""

import json
import subprocess
import sys

import psutil
import pytest

from jmsjca.demo.account import Findings, IdempotentReceiver
from jmsjca.demo.events import generate, read_events
from jmsjca.demo.progress import Batch, StallDetector, note, sum_up
from jmsjca.demo.run import DemoError, await_end
from jmsjca.demo.settings import DemoSettings
from jmsjca.errors import InvalidOptionError


def settings(tmp_path, **changes):
    given = {"folder": str(tmp_path), "url": "embedded:///x", "airports": None, "batch": 1, "run": "r1"}
    return DemoSettings(**given | changes)


def test_what_is_sent_again_is_dropped_and_counted():
    repeats = IdempotentReceiver()
    assert not repeats.is_repeat("a", "1")
    assert not repeats.is_repeat("b", "1")
    assert repeats.is_repeat("a", "1")
    assert repeats.recognised == 1


@pytest.mark.parametrize(("id_", "content"), [(None, "1"), ("a", "2"), ("b", "1")])
def test_what_only_resembles_a_repeat_gets_through(id_, content):
    """Otherwise the account would hide duplicates instead of counting them."""
    repeats = IdempotentReceiver()
    repeats.is_repeat("a", "1")
    repeats.is_repeat(None, "1")
    assert not repeats.is_repeat(id_, content)
    assert repeats.recognised == 0


def test_findings_go_on_with_what_their_file_holds(tmp_path):
    file = tmp_path / "found.jsonl"
    with Findings.kept_in(file) as findings:
        findings.add("a", ["1", "2"])
    with Findings.kept_in(file) as findings:
        findings.add("a", ["1", "2"])  # came again: the process ended before it could settle
        findings.add("b", ["3"])
        findings.add("c", ["3"])
    assert findings.events == {"1": 1, "2": 1, "3": 2}
    assert findings.repeated == 1
    assert findings.hold({"1", "3"})
    assert not findings.hold({"4"})


def test_of_a_repeated_batch_the_last_time_counts(tmp_path):
    file = tmp_path / "batches.jsonl"
    assert sum_up(file).events == 0
    note(file, Batch(0, 5, 1, 0, 10.0, 12.0))
    note(file, Batch(1, 7, 0, 0, 12.0, 13.0))
    note(file, Batch(1, 7, 2, 4, 20.0, 23.0))
    with file.open("a") as lines:
        lines.write(json.dumps({"batch": 2, "flights": 9})[:-1])  # being written
    done = sum_up(file)
    assert (done.flights, done.dead, done.events, done.again, done.seconds) == (12, 3, 15, 4, 5.0)


def test_patience_ends_when_nothing_moves():
    times = iter([0, 5, 5, 14, 16, 16, 26, 27])
    patience = StallDetector(10, lambda: next(times))
    assert [patience.is_over(figure) for figure in (1, 1, 2, 2, 2)] == [False, False, False, False, True]


def test_on_a_shared_broker_every_name_is_the_runs_own(tmp_path):
    own, shared = settings(tmp_path), settings(tmp_path, shared=True)
    assert (own.flights.name, own.dead_letters.name, own.results.name) == ("flights", "dlq.flights", "delays")
    names = [shared.flights.name, shared.dead_letters.name, shared.results.name]
    names += [shared.totals.client_id, shared.audit.client_id]
    assert all("r1" in name for name in names)
    assert shared.totals.client_id != shared.audit.client_id  # one connection each


def test_settings_are_for_the_owners_eyes(tmp_path):
    file = settings(tmp_path, url="amqp://me:s3cret@host").save()
    assert file.stat().st_mode & 0o777 == 0o600
    assert DemoSettings.load(str(file)).url == "amqp://me:s3cret@host"
    assert "s3cret" not in repr(DemoSettings.load(str(file)))


EVENTS = list(generate(5, 1))


def test_the_same_seed_generates_the_same_events():
    assert list(generate(50, 3)) == list(generate(50, 3))
    assert list(generate(50, 3)) != list(generate(50, 4))


@pytest.mark.parametrize("form", ["array", "lines", "csv"])
def test_every_form_of_file_gives_the_same_events(tmp_path, form):
    file = tmp_path / "events"
    if form == "array":
        file.write_text(json.dumps(EVENTS, indent=1))
    elif form == "lines":
        file.write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    else:
        rows = [",".join(EVENTS[0])] + [",".join(map(str, event.values())) for event in EVENTS]
        file.write_text("\n".join(rows))
    assert list(read_events(file)) == EVENTS


@pytest.mark.parametrize(
    "text", ["[{]", '{"date": 1}\n', "a,b\n1,2\n", '[{"date": "x", "delay": "late", "distance": 1}]', "[1]"]
)
def test_a_file_of_something_else_is_refused_with_its_name(tmp_path, text):
    file = tmp_path / "events"
    file.write_text(text)
    with pytest.raises(InvalidOptionError, match="events"):
        list(read_events(file))


def test_a_binary_file_is_refused(tmp_path):
    file = tmp_path / "events"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidOptionError, match="cannot be read as events"):
        list(read_events(file))


PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def grandchild():
    """A process whose parent does not ask how it ended."""
    with subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        yield psutil.Process(int(parent.stdout.readline()))
        parent.stdin.close()


def test_who_only_waits_for_a_parent_has_ended(grandchild):
    """In a container nobody may ever ask; waiting for that would be for ever."""
    grandchild.kill()
    while grandchild.status() != psutil.STATUS_ZOMBIE:
        pass
    await_end([grandchild], 0)


def test_who_does_not_end_is_told(grandchild):
    with pytest.raises(DemoError, match=f"{grandchild.pid} were killed and did not end in 0 s"):
        await_end([grandchild], 0)
