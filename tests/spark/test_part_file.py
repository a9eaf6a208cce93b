"""Files of staged messages: what is read is what was written, or an error."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from jmsjca.errors import IllegalStateError, StoreError
from jmsjca.spark.folder_store import FolderStore
from jmsjca.spark.part_file import Counts, StagedPart, read_counts, read_keys, read_part, write_part
from jmsjca.spark.schema import ARROW_SCHEMA, ipc, pa
from jmsjca.spark.staging import EpochPartition, Staging

PART = EpochPartition(1, 0)
QUERY = "0b9a4f3e-5c1d-4e8f-9a2b-7c6d5e4f3a21"  # Spark numbers its queries so


def part(*texts: str) -> StagedPart:
    table = pa.table({"text": pa.array(texts, pa.string()), "_seq": pa.array(range(len(texts)), pa.int64())})
    return StagedPart(
        table, [f"key {text}" for text in texts], Counts(len(texts) + 1, len(texts), 1, 1_700_000_000_000)
    )


def at(path: Path) -> tuple[FolderStore, str]:
    return FolderStore(path.parent), path.name


def write(path: Path, content: StagedPart) -> bytes:
    with path.open("wb") as file:
        write_part(file, content)
    return path.read_bytes()


def outcome(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except StoreError:
        return StoreError


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    for content in (part("a", "é", "c"), part()):
        write(tmp_path / "p", content)
        assert read_part(*at(tmp_path / "p")) == content
        assert read_keys(*at(tmp_path / "p")) == content.keys
        assert read_counts(*at(tmp_path / "p")) == content.counts


def test_no_bit_may_change(tmp_path: Path) -> None:
    """A flipped bit is an error of those readers that read it, and never other rows, keys or counts."""
    path, content = tmp_path / "p", part("a", "b")
    data = bytearray(write(path, content))
    found = []
    for bit in range(0, 8 * len(data), 5):  # all bytes, and in turn all of their bits
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        assert outcome(lambda: read_part(*at(path))) is StoreError, bit
        assert outcome(lambda: read_keys(*at(path))) in (StoreError, content.keys), bit
        found.append(outcome(lambda: read_counts(*at(path))))
        data[bit // 8] ^= 1 << bit % 8
    assert {StoreError, content.counts} == set(found)  # counts do not need the rows


def test_a_torn_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "p"
    data = write(path, part("a", "b"))
    for length in range(0, len(data), 3):
        path.write_bytes(data[:length])
        assert outcome(lambda: read_part(*at(path))) is StoreError, length
    path.write_bytes(data + b"\0")
    assert outcome(lambda: read_part(*at(path))) is StoreError


def test_the_error_names_the_file_and_the_remedy(tmp_path: Path) -> None:
    data = bytearray(write(tmp_path / "p", part("a")))
    data[-1] ^= 1
    (tmp_path / "p").write_bytes(data)
    with pytest.raises(StoreError, match=r"/p are damaged: the checksum of the rows .* restore the file from a backup"):
        read_part(*at(tmp_path / "p"))


def test_a_file_of_a_later_release_is_refused(tmp_path: Path) -> None:
    data = write(tmp_path / "p", part("a"))
    (tmp_path / "p").write_bytes(data.replace(b"part 2\n", b"part 3\n", 1))
    with pytest.raises(StoreError, match="format version is 3, which this release of jmsjca does not know"):
        read_part(*at(tmp_path / "p"))


def test_a_missing_file_is_no_damaged_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_part(*at(tmp_path / "p"))


def test_files_of_version_1_are_read(tmp_path: Path) -> None:
    """The first release wrote plain Arrow files: the key as a column, and the number received as metadata."""
    sent = datetime(2026, 1, 2, tzinfo=UTC)
    schema = ARROW_SCHEMA.append(pa.field("_key", pa.string())).with_metadata({b"received": b"3"})
    rows = [{"text": "a", "redelivered": True, "timestamp": sent, "_key": "k"}, {"text": "b", "redelivered": False}]
    with ipc.new_file(str(tmp_path / "p"), schema) as writer:
        writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=schema))
    found = read_part(*at(tmp_path / "p"))
    assert found.table.schema == ARROW_SCHEMA
    assert found.table.column("text").to_pylist() == ["a", "b"]
    assert found.keys == read_keys(*at(tmp_path / "p")) == ["k", None]
    assert found.counts == read_counts(*at(tmp_path / "p")) == Counts(3, 2, 1, round(sent.timestamp() * 1000))


@pytest.fixture
def staging(tmp_path: Path) -> Staging:
    made = Staging(tmp_path, "g")
    made.create_epoch(1)
    made.claim(QUERY)
    made.publish(PART, part("a"))
    made.record_decision(PART, ["key a", "key b"])
    made.commit(5, retain=5, doubt_retention=60)
    return made


def claimed_by(staging: Staging) -> str:
    try:
        staging.claim(QUERY)
    except IllegalStateError:
        return "another"
    return QUERY


@pytest.mark.parametrize(
    ("name", "read", "value"),
    [
        ("LOW", lambda staging: staging.low, 5),
        ("OWNER", claimed_by, QUERY),
        ("e-0000000001/p-00000.ok", lambda staging: staging.decision(PART), {"key a", "key b"}),
    ],
)
def test_small_files_are_checked_too(staging: Staging, name: str, read: Callable[[Staging], Any], value: Any) -> None:
    path = staging.store.folder / name
    data = bytearray(path.read_bytes())
    assert read(staging) == value
    for bit in range(8 * len(data)):
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        assert outcome(lambda: read(staging)) is StoreError, bit
        data[bit // 8] ^= 1 << bit % 8
    for length in range(len(data)):
        for rest in (b"", bytes(len(data) - length)):  # zeros are what a power cut leaves of a file
            path.write_bytes(data[:length] + rest)
            assert outcome(lambda: read(staging)) is StoreError, (length, rest)


def test_damaged_keys_in_doubt_are_an_error(staging: Staging) -> None:
    staging.commit(5, retain=0, doubt_retention=60)
    assert staging.keys_in_doubt() == {"key a"}
    path = staging.store.folder / "doubt" / "KEYS"
    path.write_bytes(path.read_bytes().replace(b"key a", b"key b"))
    with pytest.raises(StoreError, match=r"KEYS is damaged: its checksum does not match"):
        staging.keys_in_doubt()


@pytest.mark.parametrize(("name", "text"), [("LOW", "7"), ("OWNER", QUERY), ("e-0000000001/p-00001.ok", '["a"]')])
def test_small_files_of_version_1_are_read(staging: Staging, name: str, text: str) -> None:
    (staging.store.folder / name).write_text(text)
    staging.claim(QUERY)
    assert staging.low in (5, 7)
    assert staging.decision(EpochPartition(1, 1)) in (None, {"a"})
    assert (staging.low == 7) + (staging.decision(EpochPartition(1, 1)) == {"a"}) == (name != "OWNER")
