"""The programs in ``tests/java``: compiled once into the cache, with the jars that they need."""

import hashlib
import subprocess
from pathlib import Path

from brokers.cache import BrokerMissing, provide
from brokers.download import SUMS, download_all
from brokers.java import find_compiler

SOURCES = Path(__file__).parents[2] / "java"


def classpath(program, *jars):
    """Return the class path of a program of ``tests/java`` with what ``sums/<jars>.sha512`` pin."""
    libraries = [f"{_download(name)}/*" for name in jars]
    return ":".join([str(_compile(program, libraries)), *libraries])


def _download(name):
    return provide(f"jars-{name}-{_digest([SUMS / f'{name}.sha512'])}", lambda draft: download_all(name, draft))


def _compile(program, libraries):
    sources = sorted((SOURCES / program).glob("*.java"))
    command = [find_compiler(), "--release", "17", "-nowarn", "-proc:none", "-cp", ":".join(libraries)]

    def fill(draft):
        told = subprocess.run([*command, "-d", draft, *sources], check=False, capture_output=True, text=True)
        if told.returncode:
            raise BrokerMissing(f"{program} cannot be compiled:\n{told.stderr}")

    return provide(f"classes-{program}-{_digest(sources, *libraries)}", fill)


def _digest(files, *words):
    content = b"".join(file.read_bytes() for file in files)
    return hashlib.sha256(content + "".join(words).encode()).hexdigest()[:16]
