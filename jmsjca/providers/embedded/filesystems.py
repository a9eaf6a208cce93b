"""Network file systems, which no broker's file may be on."""

import re
from pathlib import Path
from typing import NamedTuple

from jmsjca.errors import InvalidURLError

__all__ = ["check_local"]

_MOUNTS = Path("/proc/self/mountinfo")
_NETWORK = {
    "9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "gfs", "gfs2", "glusterfs", "gpfs", "lustre",
    "moosefs", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "smb3", "smbfs", "wekafs",
}  # fmt: skip
_NETWORK_FUSE = {
    "beegfs", "blobfuse", "blobfuse2", "ceph", "ceph-fuse", "cifs", "curlftpfs", "davfs", "davfs2", "gcsfuse",
    "gluster", "glusterfs", "goofys", "httpfs", "juicefs", "mfs", "moosefs", "mount-s3", "rclone", "s3fs", "seaweedfs",
    "smbnetfs", "sshfs",
}  # fmt: skip
_LINE = re.compile(r"(\S+ ){4}(?P<point>\S+) .*? - (?P<kind>\S+) ")
_OCTAL = re.compile(r"\\([0-7]{3})")


class _Mount(NamedTuple):
    point: Path
    kind: str


def check_local(path: Path) -> None:
    """Refuse a file on a network file system: there, memory is not shared and locks may not hold.

    Systems that do not tell their mounts as Linux does are not checked.

    Args:
        path: The resolved path of the file.

    Raises:
        InvalidURLError: It is on one.
    """
    try:
        mounts = _MOUNTS.read_text(errors="surrogateescape")
    except OSError:
        return
    mount = _mount_of(path, mounts)
    if mount is not None and _is_network(mount.kind):
        raise InvalidURLError(
            f"{path} is on a network file system ({mount.kind}, mounted on {mount.point}): the locks and the shared "
            "memory of an embedded broker do not work there, and messages would be lost. Name a file on a local disk; "
            "for several machines use a broker that speaks AMQP or STOMP."
        )


def _mount_of(path: Path, mounts: str) -> _Mount | None:
    """The mount that a path is on: the deepest one, of several at one place the last."""
    found = None
    for line in mounts.splitlines():
        mount = _parse(line)
        if mount and path.is_relative_to(mount.point) and (not found or mount.point.is_relative_to(found.point)):
            found = mount
    return found


def _parse(line: str) -> _Mount | None:
    """Read a line of proc(5): ``36 35 98:0 /root /point options … - type source options``."""
    match = _LINE.match(line)
    if match is None:
        return None
    point = _OCTAL.sub(lambda code: chr(int(code[1], 8)), match["point"])
    return _Mount(Path(point), match["kind"])


def _is_network(kind: str) -> bool:
    return kind in _NETWORK or kind.removeprefix("fuse.") in _NETWORK_FUSE
