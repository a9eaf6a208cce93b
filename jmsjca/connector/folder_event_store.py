"""An event store in a folder: one file per event, which is moved to another folder when its status changes."""

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.data_handlers import DataHandler
from jmsjca.connector.event_store import EventRecord, RecordStatus
from jmsjca.errors import StoreError, excerpt
from jmsjca.log_records import get_logger

__all__ = ["FolderEventStore"]

logger = get_logger("jmsjca.connector")

_LONGEST_NAME = 255  # bytes; most file systems allow no more
_LATEST = 253_402_300_799  # the last second of the year 9999; some file systems have later times


class FolderEventStore:
    """An event store in a folder.

    Applications move complete files into the folder ``ready_for_poll``, each with a new name. Files are taken in the
    order of their names. Folders among them stay. The id of an event is the name of its file and the time of its last
    change.

    Args:
        folder: The folder; the folders of the statuses are created in it.
        data_handler: Converts the content of a file.
    """

    def __init__(self, folder: str | Path, data_handler: DataHandler) -> None:
        self._data_handler = data_handler
        self._folders = {status: Path(folder) / status.name.lower() for status in RecordStatus}
        for each in self._folders.values():
            each.mkdir(parents=True, exist_ok=True)
        self._recovered: list[Path] = []
        self._conflicting: set[str] = set()

    def in_progress(self) -> int:
        """Return the number of files in progress."""
        return len(self._files(RecordStatus.IN_PROGRESS))

    def recover(self) -> int:
        """Move the files in progress back to ``ready_for_poll``, and return their number.

        If a name is used there again, the file stays in progress, so that neither replaces the other. It is claimed
        first.
        """
        files = self._files(RecordStatus.IN_PROGRESS)
        self._recovered = []
        for file in files:
            ready = self._folders[RecordStatus.READY_FOR_POLL] / file.name
            if ready.exists():
                self._recovered.append(file)
            else:
                file.rename(ready)
        return len(files)

    def claim(self, limit: int) -> Sequence[EventRecord]:
        """Move the next files to ``in_progress``, and return their records. A file stays while its name is in progress.

        Args:
            limit: The maximum number.
        """
        recovered, self._recovered = self._recovered[:limit], self._recovered[limit:]
        records = [_record(file) for file in recovered if file.is_file()]
        for file in islice(self._claimable(), limit - len(records)):
            records.append(_record(file))
            file.rename(self._folders[RecordStatus.IN_PROGRESS] / file.name)
        return records

    def business_object(self, record: EventRecord) -> BusinessObject | None:
        """Return the business object of a file; None if the file was removed.

        Raises:
            DataHandlerError: The content cannot be converted.
        """
        try:
            content = (self._folders[RecordStatus.IN_PROGRESS] / record.object_key).read_bytes()
        except FileNotFoundError:
            return None
        return self._data_handler.to_business_object(content)

    def finish(self, record: EventRecord, status: RecordStatus, comment: str = "") -> None:
        """Move a file to the folder of its final status. A comment is written beside it, as ``.<name>.comment``.

        For a name that is too long for that, it is ``.<SHA-256 of the name>.comment``. If there is a folder with the
        name, the file gets the id of the event as its name.

        Args:
            record: The record.
            status: The status.
            comment: The description of an error.
        """
        file = self._folders[RecordStatus.IN_PROGRESS] / record.object_key
        target = self._folders[status] / record.object_key
        if target.is_dir():
            target = target.with_name(record.event_id)
        if comment:
            target.with_name(_comment_name(target.name)).write_text(comment, "utf-8")
        if file.exists():
            file.replace(target)

    def resubmit(self, *statuses: RecordStatus) -> int:
        """Move the files with these statuses back to ``ready_for_poll``, and return their number.

        Raises:
            StoreError: A file with the name of one of them is there; nothing is moved.
        """
        return self._move_all(*statuses)

    def _files(self, status: RecordStatus) -> list[Path]:
        found = (each for each in self._folders[status].iterdir() if not each.name.startswith("."))
        return sorted(each for each in found if each.is_file())

    def _claimable(self) -> Iterator[Path]:
        in_progress = self._folders[RecordStatus.IN_PROGRESS]
        for file in self._files(RecordStatus.READY_FOR_POLL):
            if not (in_progress / file.name).exists():
                self._conflicting.discard(file.name)
                yield file
            elif file.name not in self._conflicting:  # each poll finds it again
                self._conflicting.add(file.name)
                logger.warning("The event %r has the name of a file in progress, which it would replace.", file.name)

    def _move_all(self, *statuses: RecordStatus) -> int:
        files = [file for status in dict.fromkeys(statuses) for file in self._files(status)]
        names = Counter(file.name for file in (*files, *self._files(RecordStatus.READY_FOR_POLL)))
        if twice := next((file.name for file in files if names[file.name] > 1), None):
            raise StoreError(
                f"The event {excerpt(twice, 100)!r} waits already, or two are to be moved: a file would replace "
                f"another one of {self._folders[RecordStatus.READY_FOR_POLL]}. Nothing was changed: let a connector "
                "deliver the one that waits, or rename one."
            )
        for file in files:
            file.rename(self._folders[RecordStatus.READY_FOR_POLL] / file.name)
        return len(files)


def _record(file: Path) -> EventRecord:
    changed = file.stat().st_mtime_ns
    time = datetime.fromtimestamp(min(max(changed / 1e9, 0), _LATEST), UTC)
    return EventRecord(f"{file.name}@{changed}", "", "", file.name, event_time=time)


def _comment_name(name: str) -> str:
    comment = f".{name}.comment"
    if len(os.fsencode(comment)) <= _LONGEST_NAME:
        return comment
    return f".{hashlib.sha256(os.fsencode(name)).hexdigest()}.comment"
