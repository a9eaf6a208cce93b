"""Downloads and unpacks the brokers and the Java that they run on, into a cache for all checkouts."""

import hashlib
import os
import shutil
import tarfile
import tempfile
import urllib.request
import zipfile
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


MAVEN = "https://repo1.maven.org/maven2"
SUMS = Path(__file__).with_name("sums")

# Python 3.11.2, which Debian 12 has, does not know the filter yet.
FILTER = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


def download_all(name, folder):
    """Download what ``sums/<name>.sha512`` pins into a folder; archives are unpacked there."""
    for line in (SUMS / f"{name}.sha512").read_text().splitlines():
        digest, path = line.split()
        file = folder / Path(path).name
        file.write_bytes(_verified(path, digest))
        if file.name.endswith((".tar.gz", ".zip")):
            _unpack(file)


def _verified(path, digest):
    content = _fetch(f"{os.environ.get('JMSJCA_MAVEN', MAVEN).rstrip('/')}/{path}")
    if hashlib.sha512(content).hexdigest() != digest:
        raise BrokerMissing(f"{path} is not the file whose SHA-512 is pinned in {SUMS}")
    return content


def _fetch(url):
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310  # the user named it; proxies: environment
            return answer.read()
    except OSError as problem:
        raise BrokerMissing(f"not in the cache, and cannot be downloaded: {url}: {problem}") from problem


def _unpack(file):
    if file.suffix == ".zip":
        with zipfile.ZipFile(file) as archive:
            archive.extractall(file.parent)  # noqa: S202  # its hash is pinned
    else:
        with tarfile.open(file) as archive:
            archive.extractall(file.parent, **FILTER)  # noqa: S202  # its hash is pinned
    file.unlink()


# A small heap, the collector and the compiler that start fastest, and nothing but loopback over IPv4.
SMALL = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true"]


def find_java():
    """Return the ``java`` of ``JAVA_HOME``, else that of the path."""
    return _find("java", "there is no Java; install 17 or later, as with apt-get install openjdk-17-jre-headless")


def find_compiler():
    """Return the ``javac`` of ``JAVA_HOME``, else that of the path."""
    return _find("javac", "there is no javac; install 17 or later, as with apt-get install openjdk-17-jdk-headless")


def _find(command, advice):
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(command, path=os.path.join(home, "bin") if home else None)  # noqa: PTH118
    if not found:
        raise BrokerMissing(advice)
    return found


def java(classpath, properties, main, *arguments):
    """Return the command that runs a class."""
    settings = [f"-D{name}={value}" for name, value in properties.items()]
    return [find_java(), *SMALL, *settings, "-cp", str(classpath), main, *arguments]
