"""Unpacks packages of Debian into a folder: nothing is installed, no service starts, and no rights are needed."""

import shutil
import subprocess

from brokers.cache import BrokerMissing


def unpack_packages(packages, folder):
    """Download the packages with ``apt-get`` and unpack them."""
    # Lists of our own: the system's may be old or missing, and updating them takes rights.
    (folder / "lists" / "partial").mkdir(parents=True)
    own = {
        "Dir::State::Lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "root",
        "APT::Update::Error-Mode": "any",
    }
    options = [f"-o{name}={value}" for name, value in own.items()]
    _run(folder, "apt-get", *options, "update")
    _run(folder, "apt-get", *options, "download", *packages)
    for package in folder.glob("*.deb"):
        _run(folder, "dpkg", "-x", package, folder)
        package.unlink()
    shutil.rmtree(folder / "lists")


def _run(folder, *command):
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as problem:
        said = problem.stderr.strip().partition("\n")[0]
        raise BrokerMissing(f"not in the cache, and {command[0]} does not give it: {said}") from problem
    except OSError as problem:
        raise BrokerMissing(f"not in the cache, and only Debian's {command[0]} gives it: {problem}") from problem
