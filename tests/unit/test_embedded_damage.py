"""Damaged files and full disks: told clearly, nothing wrong is handed out, and all goes on when it can."""

import itertools
import random
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from jmsjca import BytesMessage, Queue, TextMessage
from jmsjca.config import DestinationSettings
from jmsjca.errors import (
    JMSError,
    MessageFormatError,
    StoreError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.links import ConnectionSettings, connect
from jmsjca.testing.contract.harness import prepare
from tests.unit.processes import PATIENCE, heard, process, put
from tests.unit.test_embedded_file import refused

QUEUE = Queue("q")
SIZES = (10, 100, 1000, 3000, 20_000)


@pytest.fixture
def sound(tmp_path: Path) -> tuple[Path, dict[str, bytes]]:
    """A closed file with messages of all sizes; their bodies by their ids."""
    path, chance, bodies = tmp_path / "sound.db", random.Random(7), {}
    connection = connect(ConnectionSettings(f"embedded://{path}"))
    for size in SIZES * 8:
        body = chance.randbytes(size)
        message = prepare(BytesMessage(body, properties={"size": size}), QUEUE)
        unit = connection.unit()
        unit.send(message, QUEUE)
        unit.commit()
        bodies[message.message_id] = body
    connection.close()
    return path, bodies


def damage(path: Path, chance: random.Random) -> None:
    """Do to a file what disks do: flip a bit, lose a sector, fill it with something else, end early."""
    content = bytearray(path.read_bytes())
    place = chance.randrange(len(content))
    sector = place // 512 * 512
    match chance.randrange(5):
        case 0:
            content[sector : sector + 512] = bytes(512)
        case 1:
            content[sector : sector + 512] = chance.randbytes(512)
        case 2:
            del content[place:]
        case _:
            content[place] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def read_all(path: Path) -> Iterator[tuple[str, bytes]]:
    """Take everything from the queue, passing over what is refused when looked at."""
    connection = connect(ConnectionSettings(f"embedded://{path}"))
    with closing(connection):
        consumer = connection.consumer(QUEUE)
        while deliveries := consumer.receive(10, 0):
            for delivery in deliveries:
                try:
                    message = delivery.message
                    yield message.message_id, message.body
                except MessageFormatError:
                    pass
            unit = connection.unit()
            unit.take(deliveries)
            unit.commit()


def test_damage_anywhere_hands_out_nothing_wrong(sound, tmp_path):
    """Fifty files, each damaged in one place: every message is as it was sent, or refused with an error of ours."""
    path, bodies = sound
    outcomes = []
    for number in range(50):
        victim = tmp_path / f"{number}.db"
        shutil.copy(path, victim)
        damage(victim, random.Random(number))
        count = 0
        try:
            for message_id, body in read_all(victim):
                assert bodies[message_id] == body
                count += 1
            outcomes.append("all" if count == len(bodies) else "some")
        except JMSError:
            outcomes.append("error")
    assert {"all", "some", "error"} == set(outcomes)


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(statement)
        db.commit()


FLIP_BODY = "UPDATE message SET body = x'00' || substr(body, 2) WHERE id = 2"
FLIP_HEADERS = "UPDATE message SET headers = replace(headers, 'region\":\"EU', 'region\":\"US') WHERE id = 2"


@pytest.mark.parametrize("flip", [FLIP_BODY, FLIP_HEADERS], ids=["body", "headers"])
def test_damaged_message_is_refused_when_looked_at_and_hides_no_other(connected_file, broker_file, flip):
    connection = connected_file()
    send(connection, "a", "b", "c")
    change(broker_file, flip)
    first, damaged, last = connection.consumer(QUEUE).receive(3, 0)
    assert (first.message.body, last.message.body) == ("a", "c")
    with pytest.raises(MessageFormatError, match="is damaged"):
        _ = damaged.message
    assert damaged.raw[1:] == b""


def test_damage_is_not_hidden_by_moving_the_message(connected_file, broker_file):
    dead = Queue("dead")
    connection = connected_file()
    connection.admin().configure(QUEUE, DestinationSettings(max_deliveries=1, dead_letter=dead))
    send(connection, "a", "b")
    change(broker_file, FLIP_BODY)
    unit = connection.unit()
    unit.take(connection.consumer(QUEUE).receive(2, 0))
    unit.rollback()
    good, damaged = connection.consumer(dead).receive(2, 0)
    assert (good.message.body, good.message.destination) == ("a", dead)
    with pytest.raises(MessageFormatError, match="is damaged"):
        _ = damaged.message


def test_body_of_another_kind_is_refused_when_looked_at(connected_file, broker_file):
    connection = connected_file()
    send(connection, "a", "b", "c")
    change(broker_file, "UPDATE message SET body = CAST(x'fffe' AS TEXT) WHERE id = 2")
    first, damaged, last = connection.consumer(QUEUE).receive(3, 0)
    assert (first.message.body, last.message.body) == ("a", "c")
    with pytest.raises(MessageFormatError, match="is damaged"):
        _ = damaged.message


def send(connection, *bodies: str) -> None:
    unit = connection.unit()
    for body in bodies:
        unit.send(prepare(TextMessage(body, properties={"region": "EU"}), QUEUE), QUEUE)
    unit.commit()


# A process that sends one by one and is killed: what it sent is in the journal only.
SEND_AND_DIE = """
for n in range(20):
    send("q", str(n))
tell("sent")
sys.stdin.read()
"""


@pytest.fixture
def killed(broker_file: Path) -> Path:
    with process(broker_file, SEND_AND_DIE) as child:
        assert heard(child) == "sent"
        child.kill()
    return broker_file


def bodies_in(path: Path) -> list[str]:
    connection = connect(ConnectionSettings(f"embedded://{path}"))
    with closing(connection):
        return [d.message.body for d in connection.consumer(QUEUE).receive(100, 0)]


@pytest.mark.parametrize("share", [0.999, 0.9, 0.75, 0.5])
def test_journal_that_ends_early_gives_what_was_sent_before(killed, share):
    """Whole commits, in order: never a later one without an earlier one."""
    journal = Path(f"{killed}-wal")
    journal.write_bytes(journal.read_bytes()[: int(journal.stat().st_size * share)])
    found = bodies_in(killed)
    assert found == [str(n) for n in range(len(found))]
    assert 0 < len(found) < 20


def test_journal_with_a_damaged_place_gives_what_was_sent_before(killed):
    journal = Path(f"{killed}-wal")
    content = bytearray(journal.read_bytes())
    content[len(content) * 3 // 4] ^= 1
    journal.write_bytes(content)
    found = bodies_in(killed)
    assert found == [str(n) for n in range(len(found))]
    assert 0 < len(found) < 20


def test_journal_of_garbage_is_passed_over(sound):
    path, bodies = sound
    Path(f"{path}-wal").write_bytes(random.Random(1).randbytes(100_000))
    assert dict(read_all(path)) == bodies


def test_file_without_its_end(sound):
    path, _ = sound
    path.write_bytes(path.read_bytes()[:10_000])
    with pytest.raises(StoreError, match="is damaged"):
        list(read_all(path))


def test_file_without_its_beginning(sound):
    path, _ = sound
    path.write_bytes(bytes(4096) + path.read_bytes()[4096:])
    before = path.read_bytes()
    refused(path, StoreError, "is no database, or its beginning is destroyed")
    assert path.read_bytes() == before


@contextmanager
def full(connection) -> Iterator[None]:
    """Let the file grow no further."""
    db = connection._store._db.connection
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


def test_disk_that_fails_to_write(broker_file):
    with process(broker_file, FAIL_TO_WRITE) as child:
        said = [heard(child) for _ in range(3)]
        assert child.wait(PATIENCE) == 0
    assert said[0] in {TransactionRolledBackError.__name__, TransactionInDoubtError.__name__}
    assert said[1:] == ["before", "after"]
    assert bodies_in(broker_file) == ["before", "after"]
