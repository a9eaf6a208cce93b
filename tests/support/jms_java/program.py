"""The Java programs of the tests, and the process that runs them."""

import hashlib
import json
import subprocess
from pathlib import Path

from brokers.provisioning import SUMS, BrokerMissing, download_all, find_compiler, java, provide

SOURCES = Path(__file__).parents[2] / "java"


def classpath(program, *jars):
    """Return the class path of a program of ``tests/java`` with what ``sums/<jars>.sha512`` pin."""
    libraries = [f"{download(name)}/*" for name in jars]
    return ":".join([str(_compile(program, libraries)), *libraries])


def download(name):
    """Return the folder with the jars that ``sums/<name>.sha512`` pins."""
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


FILES = "com.sun.jndi.fscontext.RefFSContextFactory"  # of JNDI, for folders with a file .bindings


def bind_in_folder(jars, folder, *objects):
    """Bind objects in a folder, as an administrator does: a name, a class, properties, and a dot for each."""
    command = java(f"{classpath('naming')}:{jars}", {}, "Bind", folder, *objects)
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)


class JavaError(Exception):
    """What Java threw."""


class JavaPeer:
    """Java's clients. What is made has the name that it was given, and is used by it."""

    def __init__(self):
        command = java(classpath("interop", "java"), {}, "interop.Main")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")

    def do(self, what, name=None, **details):
        """Carry out a command and return what it gives.

        Raises:
            JavaError: It failed.
        """
        self._process.stdin.write(json.dumps({"do": what, "name": name, **details}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise JavaError(f"Java ended at {what}; its standard error says why.")
        answer = json.loads(line)
        if "error" in answer:
            raise JavaError(f"{what}: {answer['error']}")
        return answer.get("result")

    def close(self):
        """End the process: it does when nobody speaks to it any more."""
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()
