"""Damaged files: reported clearly, and nothing wrong is delivered."""

import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from jmsjca import BytesMessage, Queue, TextMessage
from jmsjca.config import DestinationSettings
from jmsjca.errors import JMSError, MessageFormatError, StoreError
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.testing.contract.harness import prepare
from tests.unit.providers.embedded.processes import heard, process
from tests.unit.providers.embedded.test_file import refused

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
