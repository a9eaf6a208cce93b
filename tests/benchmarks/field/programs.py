"""The contenders that are programs of their own: in Java and in C++. Each runs as long as the benchmark does."""

import hashlib
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from brokers.debian import unpack_packages
from brokers.provisioning import BrokerMissing, find_java, provide
from jms_java.program import classpath

from tests.benchmarks.field.turns import AHEAD, Turn

__all__ = ["Program", "cpp_command", "java_command"]

_SOURCE = Path(__file__).with_name("proton.cpp")
_PACKAGES = [f"libqpid-proton{part}" for part in ("11", "11-dev", "-cpp12", "-cpp12-dev")]


class Program:
    """A process that reads orders and answers with seconds, line by line.

    Args:
        command: What runs it for a URL; called at the first order.
    """

    def __init__(self, command: Callable[[str], list[Any]]) -> None:
        self._command = command
        self._process: Any = None

    def does(self, loop: str, *more: object) -> Callable[[Turn], Mapping[str, float]]:
        """A contender that lets the program run one of its loops."""
        return lambda turn: self._order(turn.url, loop, turn.queue, turn.count, *more)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate()

    def _order(self, url: str, *words: object) -> Mapping[str, float]:
        if self._process is None:
            self._process = subprocess.Popen(
                self._command(url), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().split()
        if not answer:
            raise RuntimeError(f"{self._process.args[0]} ended; its standard error says why.")
        return dict(zip(("elapsed", "processor"), map(float, answer), strict=True))


def java_command(url: str) -> list[Any]:
    """Qpid JMS, alone and in Spring's container, with all of Java's own optimisation."""
    return [
        find_java(),
        "-cp",
        classpath("field", "java", "spring"),
        "field.Main",
        f"{url}?jms.prefetchPolicy.all={AHEAD}",
    ]


def cpp_command(url: str) -> list[Any]:
    """Proton's C++ client, from Debian's packages, built into the cache."""
    compiler = shutil.which("g++")
    if compiler is None:
        raise BrokerMissing("there is no g++")
    proton = provide("proton-cpp-0.37.0", lambda draft: unpack_packages(_PACKAGES, draft))
    (library,) = proton.glob("usr/lib/*/libqpid-proton-cpp.so.12")
    where = [f"-I{proton}/usr/include", f"-L{library.parent}", f"-Wl,-rpath,{library.parent},--disable-new-dtags"]
    command = [compiler, "-O2", "-std=c++17", _SOURCE, *where, f"-l:{library.name}", "-o"]
    built = provide(f"field-cpp-{_digest()}", lambda draft: subprocess.run([*command, draft / "field"], check=True))
    return [built / "field", url]


def _digest() -> str:
    return hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]
