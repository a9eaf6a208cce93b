"""File systems that may hold a broker file, and removal of the file."""

import queue
import sys
from pathlib import Path

import pytest

from jmsjca import ResourceAdapter
from jmsjca.destinations import Queue
from jmsjca.errors import InvalidURLError, StoreError
from jmsjca.providers.embedded.store import shared_file
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.inbound.listeners import Recorder
from tests.unit.providers.embedded.processes import PATIENCE, heard, process, put, received
from tests.unit.providers.embedded.test_file import refused
from tests.unit.providers.embedded.test_processes import go_on

LOCAL = "24 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw"


def mount(point: object, kind: str) -> str:
    return f"36 24 0:31 / {point} rw,relatime shared:7 master:2 - {kind} somewhere rw,vers=4.2"


@pytest.fixture
def mounted(tmp_path, monkeypatch):
    """Pretends these mounts."""

    def pretend(*mounts: str) -> None:
        (tmp_path / "mountinfo").write_text("\n".join([LOCAL, *mounts]) + "\n")
        monkeypatch.setattr(shared_file, "_MOUNTS", tmp_path / "mountinfo")

    return pretend


@pytest.mark.parametrize(
    "kind",
    ["nfs", "nfs4", "cifs", "smb3", "9p", "afs", "ceph", "glusterfs", "lustre", "fuse.sshfs", "fuse.s3fs", "beegfs"],
)
def test_network_file_system_is_refused(mounted, tmp_path, broker_file, kind):
    mounted(mount(tmp_path, kind))
    refused(broker_file, InvalidURLError, f"network file system \\({kind}, mounted on {tmp_path}\\).*local disk")
    assert not broker_file.exists()


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "fuse.gocryptfs", "fuseblk"])
def test_local_file_system_is_accepted(mounted, tmp_path, broker_file, kind):
    mounted(mount(tmp_path, kind))
    connect(ConnectionSettings(f"embedded://{broker_file}")).close()


def test_deepest_mount_decides(mounted, tmp_path, broker_file):
    mounted(mount(tmp_path.parent, "nfs4"), mount(tmp_path, "ext4"), mount(f"{tmp_path}/broker.db.d", "nfs4"))
    connect(ConnectionSettings(f"embedded://{broker_file}")).close()


def test_latest_of_two_mounts_at_one_place_decides(mounted, tmp_path, broker_file):
    mounted(mount(tmp_path, "ext4"), mount(tmp_path, "nfs"))
    refused(broker_file, InvalidURLError, "network file system")


def test_mount_whose_name_only_begins_alike_does_not_matter(mounted, tmp_path):
    folder = tmp_path / "data-local"
    folder.mkdir()
    mounted(mount(tmp_path / "data", "nfs"))
    connect(ConnectionSettings(f"embedded://{folder}/broker.db")).close()


def test_signs_in_the_name_of_a_mount_are_understood(mounted, tmp_path):
    folder = tmp_path / "net work"
    folder.mkdir()
    mounted(mount(f"{tmp_path}/net\\040work", "nfs"))
    refused(f"{tmp_path}/net%20work/broker.db", InvalidURLError, "network file system")


def test_link_to_a_network_file_system_does_not_help(mounted, tmp_path):
    (tmp_path / "net").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "net")
    mounted(mount(tmp_path / "net", "nfs"))
    refused(tmp_path / "link" / "broker.db", InvalidURLError, "network file system")


@pytest.mark.parametrize("text", ["", "no mounts in here\n", " - \n", "1 2 3 - nfs\n"])
def test_mounts_that_cannot_be_read_are_not_checked(broker_file, tmp_path, monkeypatch, text):
    (tmp_path / "mountinfo").write_text(text)
    for place in (tmp_path / "mountinfo", tmp_path / "missing"):
        monkeypatch.setattr(shared_file, "_MOUNTS", place)
        connect(ConnectionSettings(f"embedded://{broker_file}")).close()


def test_this_system_tells_its_mounts():
    """Or nothing of this is checked on it; systems that are not Linux have no such file."""
    assert sys.platform != "linux" or shared_file._mount_of(Path("/"), shared_file._MOUNTS.read_text()) is not None


@pytest.mark.parametrize(
    ("path", "match"),
    [("{}/a%00b.db", "null"), ("{}/" + "x" * 300, "too long"), ("{}/file/broker.db", "does not exist")],
)
def test_path_that_names_nothing(tmp_path, path, match):
    (tmp_path / "file").touch()
    refused(path.format(tmp_path), InvalidURLError, match)


def test_dots_and_case_name_what_they_name(tmp_path, connected_file, broker_file):
    connection = connected_file()
    same = connect(ConnectionSettings(f"embedded://{tmp_path}/x/../broker.db"))
    other = connect(ConnectionSettings(f"embedded://{tmp_path}/Broker.db"))
    assert same._store is connection._store
    assert other._store is not connection._store
    same.close()
    other.close()


def test_file_that_is_removed_in_use(connected_file, broker_file):
    """What is committed to it from now on would be lost."""
    connection = connected_file()
    put(connection, "a")
    broker_file.unlink()
    with pytest.raises(ConnectionError, match="was removed or replaced"):
        put(connection, "b")
    with pytest.raises(ConnectionError, match="was removed or replaced"):
        connection.consumer(connection.admin().destinations()[0])


@pytest.mark.parametrize(
    "look",
    [
        lambda connection, consumer: consumer.receive(1, 0),
        lambda connection, consumer: consumer.receive(1, None),
        lambda connection, consumer: list(connection.browse(Queue("q"))),
        lambda connection, consumer: connection.admin().depth(Queue("q")),
    ],
)
def test_file_that_is_removed_in_use_is_not_empty(connected_file, broker_file, look):
    connection = connected_file()
    consumer = connection.consumer(Queue("q"))
    broker_file.unlink()
    with pytest.raises(ConnectionError, match="was removed or replaced"):
        look(connection, consumer)


def test_file_that_is_replaced_in_use(connected_file, broker_file, tmp_path):
    connection = connected_file()
    other = tmp_path / "other.db"
    with process(other, "send('q', 'from the other')") as child:
        assert child.wait(PATIENCE) == 0
    for ending in ("-wal", "-shm"):
        Path(f"{broker_file}{ending}").unlink()
    other.rename(broker_file)
    with pytest.raises(ConnectionError, match="was removed or replaced"):
        put(connection, "lost")
    assert received(connected_file()) == [("from the other", 1)]


_HOLD = """
consumer = connection.consumer(Queue("q"))
held = consumer.receive(1, 0)
consumer.hand_over(held)
tell("in")
sys.stdin.read()
"""


def test_process_that_goes_on_with_a_removed_file(broker_file):
    """Its lock is not taken for that of the new file's first user, whose messages it would keep or release."""
    with process(broker_file, "send('q', 'old')" + _HOLD) as child:
        assert heard(child) == "in"
        for path in broker_file.parent.glob("broker.db*"):
            if path.is_file():
                path.unlink()
        connection = connect(ConnectionSettings(f"embedded://{broker_file}"))
        put(connection, "new")
        with process(broker_file, _HOLD) as user:
            assert heard(user) == "in"
            connection._store.release_dead_owners(now=True)
            assert connection.consumer(Queue("q")).receive(1, 0) == []
            user.kill()
            user.wait(PATIENCE)
            assert received(connection) == [("new", 2)]
        child.kill()
    connection.close()


@pytest.mark.parametrize("endings", [[""], ["", "-wal", "-shm"]], ids=["the file", "the journal as well"])
def test_process_whose_own_file_was_removed_makes_a_new_one(connected_file, broker_file, endings):
    """Its open connections say so; another one need not end them before, nor the process."""
    connection = connected_file()
    put(connection, "old")
    consumer = connection.consumer(Queue("q"))
    for ending in endings:
        Path(f"{broker_file}{ending}").unlink()
    new = connected_file()
    put(new, "new")
    for attempt in (lambda: put(connection, "lost"), lambda: consumer.receive(1, 0)):
        with pytest.raises(ConnectionError, match=r"was (removed or replaced|closed; connect again)"):
            attempt()
    connection.close()
    with process(broker_file, "tell(connection.consumer(Queue('q')).receive(9, 60)[0].message.body)") as child:
        assert heard(child) == "new"
        assert child.wait(PATIENCE) == 0
    assert not new.consumer(Queue("q")).receive(9, 0)[1:]


def test_listener_whose_file_was_removed_goes_on_with_a_new_one(broker_file):
    got, recorder = queue.Queue(), Recorder()
    adapter = ResourceAdapter(f"embedded://{broker_file}", hooks=[recorder])
    adapter.listener("q")(lambda message: got.put(message.body))
    with adapter:
        adapter.send("q", "a")
        assert got.get(timeout=PATIENCE) == "a"
        recorder.await_status("Connecting", "Up")
        broker_file.unlink()
        recorder.await_status("Connecting", "Up")
        adapter.send("q", "b")
        assert got.get(timeout=PATIENCE) == "b"


REMOVED = [["-shm"], ["-wal"], ["-wal", "-shm"]]


@pytest.mark.parametrize("endings", REMOVED, ids=" ".join)
def test_journal_that_is_removed_in_use(connected_file, broker_file, endings):
    """What is committed from now on could not be read: it is not confirmed. What was confirmed before is there."""
    connection = connected_file()
    put(connection, "a")
    consumer, unit = connection.consumer(Queue("q")), connection.unit()
    unit.take(consumer.receive(1, 0))
    for ending in endings:
        Path(f"{broker_file}{ending}").unlink()
    for attempt in (
        lambda: put(connection, "b"),
        unit.commit,
        lambda: consumer.receive(1, 0),
        lambda: list(connection.browse(Queue("q"))),
    ):
        with pytest.raises(ConnectionError, match=f"{endings[0]} was removed or replaced"):
            attempt()
    again = connected_file()
    put(again, "c")
    script = "tell(*(d.message.body for d in connection.consumer(Queue('q')).receive(9, 60)))"
    with process(broker_file, script) as child:
        assert heard(child) == "a c"
        assert child.wait(PATIENCE) == 0


_REFUSED_ONCE = """
send("q", "its first")
tell("sent")
sys.stdin.readline()
try:
    send("q", "unconfirmed")
    tell("confirmed")
except ConnectionLostError:
    tell("refused")
connection.close()
sys.stdin.readline()
connection = connect(ConnectionSettings(url))
send("q", "its second")
tell("sent")
sys.stdin.readline()
connection.close()
"""


def test_index_that_is_removed_under_two_processes(connected_file, broker_file):
    """Each would write to the journal as if the other one were not there."""
    connection = connected_file()
    put(connection, "first")
    with process(broker_file, _REFUSED_ONCE) as child:
        assert heard(child) == "sent"
        Path(f"{broker_file}-shm").unlink()
        with pytest.raises(ConnectionError, match="-shm was removed or replaced"):
            put(connection, "unconfirmed")
        go_on(child)
        assert heard(child) == "refused"
        connection = connected_file()
        go_on(child)
        assert heard(child) == "sent"
        put(connection, "second")
        go_on(child)
        assert child.wait(PATIENCE) == 0
    assert sorted(body for body, _ in received(connection)) == ["first", "its first", "its second", "second"]


def test_new_file_has_no_journal_of_a_removed_one(connected_file, broker_file):
    Path(f"{broker_file}-shm").write_bytes(b"x" * 32768)
    Path(f"{broker_file}-wal").write_bytes(b"x" * 4096)
    connection = connected_file()
    put(connection, "a")
    assert received(connection) == [("a", 1)]


def test_folder_of_wakeup_sockets_that_cannot_be_used(broker_file, tmp_path, monkeypatch):
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    refused(broker_file, StoreError, "TMPDIR")
    assert list(deep.iterdir()) == []
