"""A folder of a machine that loses power: what was not flushed to disk is gone.

Each process that writes calls `LossyFolder.watch`. From then on it records what it flushes: the content of a file, or
the names in a folder. A file whose content was not flushed is empty after the cut; one whose name was not flushed is
missing, with all that is below it.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path

__all__ = ["LossyFolder"]

_CONTENT = "content"


class LossyFolder:
    """A folder, and beside it a record of what is on the disk.

    Args:
        folder: The folder. Other folders are not recorded.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._disk = folder.parent / f"disk of {folder.name}"
        self._fsync = os.fsync

    def watch(self) -> None:
        """Record from now on what this process flushes."""
        (self._disk / _CONTENT).mkdir(parents=True, exist_ok=True)
        os.fsync = self._flush

    def cut_power(self) -> None:
        """Leave in the folder what is on the disk. No other process may write meanwhile."""
        shutil.rmtree(self._folder)
        names = self._disk / str(self._folder.parent.stat().st_ino)
        if (names / self._folder.name).exists():
            self._restore((names / self._folder.name).read_text(), self._folder)

    def _flush(self, fd) -> None:
        self._fsync(fd)
        path = Path(f"/proc/self/fd/{fd}").readlink()
        if path.is_dir() and (path == self._folder.parent or path.is_relative_to(self._folder)):
            self._record_names(path)
        elif path.is_relative_to(self._folder):
            with suppress(FileExistsError):  # a link keeps the number of the file from being used again
                os.link(path, self._disk / _CONTENT / str(path.stat().st_ino))

    def _record_names(self, folder: Path) -> None:
        names = self._disk / str(folder.stat().st_ino)
        names.mkdir(exist_ok=True)
        for path in folder.iterdir():
            with suppress(FileNotFoundError):
                new = names / f".{path.name}.{os.getpid()}"
                new.write_text(f"{path.stat().st_ino} {path.is_dir():d}")
                new.replace(names / path.name)
        for name in os.listdir(names):  # noqa: PTH208  # names are enough
            if not name.startswith(".") and not (folder / name).exists():
                (names / name).unlink(missing_ok=True)

    def _restore(self, record: str, target: Path) -> None:
        number, is_folder = record.split()
        if not int(is_folder):
            content = self._disk / _CONTENT / number
            target.write_bytes(content.read_bytes() if content.exists() else b"")
            return
        target.mkdir()
        for name in (self._disk / number).glob("[!.]*"):
            self._restore(name.read_text(), target / name.name)
