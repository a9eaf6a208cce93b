"""Who may have prepared a broker's file: nobody but its user, and nothing that leads elsewhere."""

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from jmsjca.errors import InvalidURLError, StoreError
from tests.unit.processes import PATIENCE, heard, process
from tests.unit.test_embedded_file import refused

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
def test_link_in_place_of_what_sqlite_keeps_beside_the_file(broker_file, tmp_path, ending):
    """SQLite would write through it: into whatever file somebody else has chosen."""
    (tmp_path / "precious").write_text("precious")
    Path(f"{broker_file}{ending}").symlink_to(tmp_path / "precious")
    refused(broker_file, InvalidURLError, f"broker.db{ending}.*not a file of this user")
    assert (tmp_path / "precious").read_text() == "precious"


def test_link_in_place_of_the_folder_of_the_lock_files(broker_file, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    Path(f"{broker_file}-owners").symlink_to(tmp_path / "elsewhere")
    refused(broker_file, InvalidURLError, "not a folder of this user")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_link_in_place_of_a_lock_file(broker_file, tmp_path):
    folder = Path(f"{broker_file}-owners")
    folder.mkdir(mode=0o700)
    (folder / "1.lock").symlink_to(tmp_path / "elsewhere")
    refused(broker_file, StoreError, "owners cannot be written")
    assert not (tmp_path / "elsewhere").exists()


def test_link_that_was_put_there_after_the_url_was_resolved(broker_file, tmp_path):
    from jmsjca.providers.embedded.store.files import prepare_file

    broker_file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidURLError, match="is not a file"):
        prepare_file(broker_file)
    assert not (tmp_path / "elsewhere").exists()


def test_second_name_of_the_file(connected_file, broker_file, tmp_path):
    """Two names are two journals: SQLite would destroy the file that has both."""
    connected_file()
    (tmp_path / "second.db").hardlink_to(broker_file)
    refused(tmp_path / "second.db", InvalidURLError, "2 names")


def test_folders_and_files_are_for_their_user_alone(connected_file, broker_file):
    umask = os.umask(0)
    try:
        connected_file()
    finally:
        os.umask(umask)
    folder = Path(f"{broker_file}-owners")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [broker_file, folder, *folder.iterdir()]}
    assert modes == {"broker.db": 0o600, "broker.db-owners": 0o700, "1.lock": 0o600}


def as_nobody(script: str, path: object) -> str:
    """Run a script as another user; give the error that it ends with, or what it prints."""
    command = [sys.executable, "-c", AS_NOBODY + script, str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    return (result.stderr.splitlines() or [result.stdout])[-1]


# That user may not be allowed to read Python's own files: everything is imported before.
AS_NOBODY = f"""
import os, sys, tempfile
from jmsjca import Queue
from jmsjca.reconnection import ConnectionSettings, connect
with tempfile.TemporaryDirectory() as folder:
    connection = connect(ConnectionSettings(f"embedded://{{folder}}/warm.db"))
    connection.consumer(Queue("q")).receive(1, 0)
    connection.close()
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
"""
OPEN = "connect(ConnectionSettings('embedded://' + sys.argv[1])).close()"


@pytest.fixture
def public():
    """A folder that everybody may write to, like /tmp."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o1777)
        yield Path(folder)


@needs_root
def test_file_that_another_user_prepared(public):
    file = public / "broker.db"
    file.touch()
    file.chmod(0o666)
    assert "InvalidURLError" in (error := as_nobody(OPEN, file))
    assert "belongs to another user (id 0)" in error


@needs_root
def test_folder_of_lock_files_that_another_user_prepared(public):
    folder = public / "broker.db-owners"
    folder.mkdir()
    folder.chmod(0o777)
    assert "not a folder of this user" in as_nobody(OPEN, public / "broker.db")


@needs_root
@pytest.mark.parametrize("mode", [0o444, 0o200])
def test_file_that_the_user_may_not_read_or_write(public, mode):
    file = public / "broker.db"
    file.touch()
    os.chown(file, NOBODY, NOBODY)
    file.chmod(mode)
    assert "cannot be read and written" in as_nobody(OPEN, file)


@needs_root
def test_folder_that_the_user_may_not_write(public):
    public.chmod(0o755)
    assert "InvalidURLError" in (error := as_nobody(OPEN, public / "broker.db"))
    assert "Permission denied" in error


@needs_root
def test_folder_that_the_user_may_not_enter(public):
    public.chmod(0o700)
    assert "InvalidURLError" in (error := as_nobody(OPEN, public / "broker.db"))
    assert "Permission denied" in error


@needs_root
def test_file_in_a_folder_that_became_read_only(public):
    """The file may be written, but SQLite cannot make its journal beside it."""
    file = public / "broker.db"
    assert as_nobody(OPEN, file) == ""
    public.chmod(0o755)
    assert "StoreError" in (error := as_nobody(OPEN, file))
    assert "is it read-only?" in error
    public.chmod(0o1777)
    assert as_nobody(OPEN, file) == ""


@needs_root
def test_root_does_not_lock_out_the_user_of_a_file(public):
    file = public / "broker.db"
    assert as_nobody(OPEN, file) == ""
    with process(file, "send('q', 'from root')\ntell('in')\nsys.stdin.read()") as child:
        assert heard(child) == "in"
        script = f"""
connection = connect(ConnectionSettings("embedded://" + sys.argv[1]))
print(connection.consumer(Queue("q")).receive(1, {PATIENCE})[0].message.body)
"""
        assert as_nobody(script, file) == "from root\n"
