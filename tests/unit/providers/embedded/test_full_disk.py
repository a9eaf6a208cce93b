"""Full and failing disks: reported clearly, nothing is lost, and work continues afterwards."""

import itertools
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from jmsjca import ActivationSpec, BytesMessage, Queue, ResourceAdapter
from jmsjca.errors import ResourceAllocationError, TransactionInDoubtError, TransactionRolledBackError
from jmsjca.providers.embedded.maintenance import backup
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.testing.contract.harness import prepare
from tests.unit.inbound.listeners import send
from tests.unit.providers.embedded.processes import PATIENCE, REPEATED, heard, process, put, trouble

QUEUE = Queue("q")


@contextmanager
def full(connection) -> Iterator[None]:
    """Let the file grow no further."""
    db = connection._store.database.connection
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    db.execute(f"PRAGMA max_page_count = {pages}")
    yield
    db.execute("PRAGMA max_page_count = 1000000")


def test_full_disk_fails_the_commit_and_loses_nothing(connected_file):
    connection = connected_file()
    put(connection, "before")
    with full(connection):
        with pytest.raises(TransactionRolledBackError, match="No space left"):
            put(connection, "x" * 100_000)
        [delivery] = connection.consumer(QUEUE).receive(10, 0)
        assert delivery.message.body == "before"
    put(connection, "x" * 100_000)
    assert connection.admin().depth(QUEUE).total == 2


def test_full_disk_leaves_what_a_unit_took_to_be_taken_again(connected_file):
    connection = connected_file()
    put(connection, "a")
    with full(connection):
        unit = connection.unit()
        unit.take(connection.consumer(QUEUE).receive(1, 0))
        unit.send(prepare(BytesMessage(bytes(100_000)), QUEUE), QUEUE)
        with pytest.raises(TransactionRolledBackError, match="No space left"):
            unit.commit()
        [again] = connection.consumer(QUEUE).receive(10, 0)
        assert (again.message.body, again.count) == ("a", 2)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 16 megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "jmsjca-test", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(connection, number: int) -> int:
    """Send until there is no more room; give the number of the first message that was not sent."""
    with pytest.raises(TransactionRolledBackError, match="No space left"):  # noqa: PT012  # sends until it fails
        while True:
            put(connection, f"{number},{'x' * 20_000}")
            number += 1
    return number


def empty(connection) -> list[int]:
    """Consume all that is there; give the numbers of the messages."""
    consumer, numbers = connection.consumer(QUEUE), []
    while deliveries := consumer.receive(10, 0):
        numbers += [int(delivery.message.body.split(",")[0]) for delivery in deliveries]
        unit = connection.unit()
        unit.take(deliveries)
        unit.commit()
    return numbers


def test_full_disk_can_be_consumed_from_and_filled_again(small_disk):
    """Nobody makes room but those who consume, and each time as much fits as before."""
    connection = connect(ConnectionSettings(f"embedded://{small_disk}/broker.db"))
    sent = [0]
    for _ in range(5):
        sent.append(fill(connection, sent[-1]))
        assert empty(connection) == list(range(*sent[-2:]))
    fitted = [after - before for before, after in itertools.pairwise(sent)]
    assert min(fitted) > 0.9 * max(fitted) > 50
    connection.close()


def test_disk_that_others_filled(small_disk):
    """Not a byte is left: nothing works, nothing is lost, and all works once the others have gone."""
    connection = connect(ConnectionSettings(f"embedded://{small_disk}/broker.db"))
    put(connection, "before")
    consumer, ballast = connection.consumer(QUEUE), small_disk / "ballast"
    with pytest.raises(OSError, match="No space left"), ballast.open("wb", buffering=0) as file:  # noqa: PT012
        while True:
            file.write(bytes(65536))
    with pytest.raises(TransactionRolledBackError, match="No space left"):
        put(connection, "x" * 50_000)
    ballast.unlink()
    put(connection, "after")
    assert [d.message.body for d in consumer.receive(10, 0)] == ["before", "after"]
    connection.close()


@pytest.mark.parametrize("fails", [False, True], ids=["commit", "rollback"])
@pytest.mark.parametrize("mode", ["serial", "cc", "sync"])
def test_listener_on_a_disk_that_is_full_for_a_while(small_disk, mode, fails):
    """Neither the receipt nor the release can be written: both are, once there is room. Nothing is overtaken."""
    adapter = ResourceAdapter(f"embedded://{small_disk}/broker.db")
    ballast, seen, done = small_disk / "ballast", [], threading.Event()
    send(adapter, "a", "b", "c")

    def handle(message):
        seen.append((message.body, message.delivery_count))
        if len(seen) == 1:
            with suppress(OSError), ballast.open("wb", buffering=0) as file:
                while file.write(bytes(65536)):
                    pass
            if fails:
                raise ValueError("failed")
        if {body for body, _ in seen[1:]} == {"a", "b", "c"}:
            done.set()

    spec = ActivationSpec(destination=QUEUE, concurrency_mode=mode, endpoint_pool_max_size=1)
    adapter.activate(spec, handle)
    with trouble(REPEATED, ballast.unlink), adapter:
        assert done.wait(PATIENCE)
    assert (seen[0][0], 2) in seen
    if mode == "serial":
        assert seen == [("a", 1), ("a", 2), ("b", 1), ("c", 1)]
    connection = connect(ConnectionSettings(f"embedded://{small_disk}/broker.db"))
    assert connection.admin().depth(QUEUE).total == 0
    connection.close()


def test_disk_that_has_no_room_for_a_copy(small_disk, broker_file, connected_file):
    connection = connected_file()
    for _ in range(20):
        put(connection, "x" * 1_000_000)
    copy = small_disk / "copy.db"
    with pytest.raises(ResourceAllocationError) as caught:
        backup(broker_file, copy)
    assert str(caught.value) == f"{copy} cannot be written: no space left; name another place for the copy."
    assert not list(small_disk.iterdir())


# The limit on the size of files makes writes fail as a broken disk does: with an error that is not "no space left".
FAIL_TO_WRITE = """
import resource
from jmsjca.errors import JMSError
send("q", "before")
size = os.path.getsize(sys.argv[1].removeprefix("embedded://") + "-wal")
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10_000, resource.RLIM_INFINITY))
try:
    send("q", "x" * 100_000)
except JMSError as error:
    tell(type(error).__name__)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
send("q", "after")
for delivery in connection.consumer(Queue("q")).receive(10, 0):
    tell(delivery.message.body[:10])
connection.close()
"""


FAIL_TO_COPY = """
import resource
from pathlib import Path
from jmsjca.errors import JMSError
from jmsjca.providers.embedded.maintenance import backup
send("q", "x" * 100_000)
file = Path(sys.argv[1].removeprefix("embedded://"))
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
try:
    backup(file, file.with_name("copy.db"))
except JMSError as error:
    tell(f"{type(error).__name__}: {error}")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
connection.close()
"""


def test_disk_that_fails_to_write_a_copy(broker_file):
    copy = broker_file.with_name("copy.db")
    with process(broker_file, FAIL_TO_COPY) as child:
        assert heard(child) == (
            f"ResourceAllocationError: {copy} cannot be written: disk I/O error; name another place for the copy."
        )
        assert child.wait(PATIENCE) == 0


def test_disk_that_fails_to_write(broker_file, connected_file):
    with process(broker_file, FAIL_TO_WRITE) as child:
        said = [heard(child) for _ in range(3)]
        assert child.wait(PATIENCE) == 0
    assert said[0] in {TransactionRolledBackError.__name__, TransactionInDoubtError.__name__}
    assert said[1:] == ["before", "after"]
    connection = connected_file()
    assert [d.message.body for d in connection.consumer(QUEUE).receive(10, 0)] == ["before", "after"]
