"""Downloads the pinned files of Maven Central and checks them."""

import hashlib
import os
import tarfile
import urllib.request
import zipfile
from pathlib import Path

from brokers.cache import BrokerMissing

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
