"""Builds the peer that is written in C, and runs it: see ``peer.c``."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from brokers.debian import unpack_packages
from brokers.provisioning import BrokerMissing, provide

__all__ = ["running"]

_SOURCE = Path(__file__).with_name("peer.c")
_PACKAGES = ("libqpid-proton11", "libqpid-proton11-dev")
_LIBRARIES = ("-l:libqpid-proton-proactor.so.1", "-l:libqpid-proton-core.so.10")


@contextmanager
def running(folder: Path, product: str, message: bytes) -> Iterator[str]:
    """Build the peer in a folder, and give the URL at which it sends a message as often as it is asked to.

    Args:
        folder: Where it is built.
        product: What it calls itself.
        message: The message, encoded.

    Raises:
        BrokerMissing: It cannot be built here.
    """
    (folder / "message").write_bytes(message)
    command = [_build(folder), product, folder / "message"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"amqp://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


def _build(folder: Path) -> Path:
    compiler = shutil.which("gcc")
    if compiler is None:
        raise BrokerMissing("there is no gcc")
    proton = provide("proton-c-0.37.0", lambda draft: unpack_packages(_PACKAGES, draft))
    (libraries,) = (path.parent for path in proton.glob("usr/lib/*/libqpid-proton-core.so.10"))
    where = [f"-I{proton}/usr/include", f"-L{libraries}", f"-Wl,-rpath,{libraries}"]
    peer = folder / "peer"
    flags = ["-O2", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *flags, "-o", peer, _SOURCE, *where, *_LIBRARIES], check=True, stdout=sys.stderr)
    return peer
