"""The folder that keeps what was downloaded, for every checkout of this user."""

import os
import shutil
import tempfile
from pathlib import Path


class BrokerMissing(Exception):  # noqa: N818  # says what is the matter, as the tests' reports show it
    """A broker cannot be had on this machine; the message says why."""


def cache_folder():
    """Tell where brokers are kept: ``JMSJCA_CACHE``, else the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("JMSJCA_CACHE") or Path(base) / "jmsjca") / "brokers"


def provide(name, fill):
    """Return the cached folder ``name``; one that is missing is made by ``fill`` and appears whole or not at all."""
    folder = cache_folder() / name
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=folder.parent))
        try:
            fill(draft)
            _publish(draft, folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return folder


def _publish(draft, folder):
    try:
        draft.rename(folder)
    except OSError:
        if not folder.exists():  # another process that was faster is no error
            raise
