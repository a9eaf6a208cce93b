"""The main job from end to end, in processes of its own."""

import contextlib
from pathlib import Path
from typing import ClassVar

import psutil
import pytest

from jmsjca import ConnectionFactory, Queue
from jmsjca.demo.events import DemoRequest
from jmsjca.demo.progress import CrashTrigger
from jmsjca.demo.run import Display, run_demo
from tests.demo.accounts import assert_balanced, assert_crashed

pytestmark = pytest.mark.demo

DATA = Path(__file__).parent / "data"
HIDDEN = "s3cret-of-the-url"


@pytest.mark.torture
@pytest.mark.timeout(0)  # a busy machine makes the run long; the fixture ends one without progress
def test_every_event_of_the_sample_is_accounted_for(demo, sample):
    done, account = demo(*sample, "--poison", "0.05")
    assert_balanced(done, account, 400)
    assert account["dead_lettered"] > 0
    folder = Path(account["picture"]).parent
    with ConnectionFactory(f"embedded://{folder}/broker.db").create_connection() as connection:
        dead = list(connection.create_session().create_browser(Queue("dlq.flights")))
    assert len(dead) == account["dead_lettered"]
    assert all(message.properties["reason"] for message in dead)


class Watching(CrashTrigger):
    """Notes the arguments of all processes of the run, once they are all there."""

    seen: ClassVar[list[str]] = []

    def has_come(self):
        if not self.seen and self.committed_batches:
            self.seen.extend(map(arguments_of, psutil.Process().children(recursive=True)))
        return super().has_come()


def arguments_of(process):
    with contextlib.suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""


@pytest.mark.timeout(0)  # a busy machine makes the run long; the run itself ends when it makes no progress
def test_a_crash_loses_nothing_doubles_nothing_and_tells_no_password(tmp_path):
    """On a broker that was there before, which is as it was when the run is over."""
    broker = f"{tmp_path}/broker.db"
    url = f"embedded://me:{HIDDEN}@{broker}"
    request = DemoRequest(
        DATA / "flights.csv", DATA / "airports.csv", poison=0.05, crash=True, url=url, output=tmp_path
    )
    account = run_demo(request, Display(), crash_moment=Watching)
    assert account["balanced"], account
    assert_crashed(account)
    with ConnectionFactory(f"embedded://{broker}").create_connection() as connection:
        assert list(connection.admin.destinations()) == []
    assert any("java" in arguments for arguments in Watching.seen)
    assert not any(HIDDEN in arguments for arguments in Watching.seen)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert [file.name for file in files if HIDDEN.encode() in file.read_bytes()] == ["settings.json"]
