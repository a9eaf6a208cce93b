"""Packages of Debian, unpacked into the cache and not installed; those of a later release bring their own C library."""

import shutil
import subprocess
from pathlib import Path

from brokers.provisioning import BrokerMissing

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

MIRRORS = ("indextargets", "--format=$(REPO_URI)", "Origin: Debian", "Label: Debian", "Created-By: Packages")


def unpack_packages(packages, folder, *, release=None):
    """Download the packages with ``apt-get``, which checks their signatures, and unpack them.

    Args:
        packages: Their names, each with ``=`` and a version if it must be that one.
        folder: Where to.
        release: The code name of another release of Debian, which the mirror of this machine has, too.
    """
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
    if release:
        options += _sources(folder, options, release)
        _run(folder, "apt-get", *options, "update")
    _run(folder, "apt-get", *options, "download", *packages)
    for package in folder.glob("*.deb"):
        _run(folder, "dpkg", "-x", package, folder)
        package.unlink()
    shutil.rmtree(folder / "lists")
    (folder / "sources.list").unlink(missing_ok=True)


def _sources(folder, options, release):
    """Return the options that read another release from the mirror that this machine uses for its own."""
    mirrors = _run(folder, "apt-get", *options, *MIRRORS).split()
    if not mirrors:
        raise BrokerMissing(f"not in the cache, and this machine's apt-get knows no mirror that has Debian {release}")
    signed = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
    sources = folder / "sources.list"
    sources.write_text(f"deb {signed}{mirrors[0]} {release} main\n")
    return [f"-oDir::Etc::SourceList={sources}", "-oDir::Etc::SourceParts=/dev/null"]


LOADERS = "usr/lib/*/ld-linux*.so.*"
ELF = b"\x7fELF"

# A program starts others by their paths, so each becomes a script of the same path.
SCRIPT = """\
#!/bin/sh
# Runs {program} with the C library that was unpacked with it, not with this machine's.
root=${{0%/*}}/{root}
exec "$root/{loader}" --argv0 "$0" --library-path "$root/{libraries}" "${{0%/*}}/{program}" "$@"
"""


def use_own_loader(root, programs):
    """Make the unpacked programs run with the loader and the libraries that were unpacked beside them.

    Args:
        root: The folder of the unpacked packages.
        programs: The folder below it in which each program is found.
    """
    (loader,) = sorted(root.glob(LOADERS))[:1]
    for file in [file for file in (root / programs).rglob("*") if _is_program(file)]:
        program = file.rename(file.with_name(f"{file.name}.elf"))
        up = "/".join(".." for _ in file.relative_to(root).parts[:-1])
        loaded = {"loader": loader.relative_to(root), "libraries": loader.parent.relative_to(root)}
        file.write_text(SCRIPT.format(program=program.name, root=up, **loaded))
        file.chmod(0o755)


def _is_program(file):
    if file.is_symlink() or not file.is_file() or ".so" in file.suffixes or not file.stat().st_mode & 0o100:
        return False
    with file.open("rb") as content:
        return content.read(len(ELF)) == ELF


def _run(folder, *command):
    """Return what a command prints."""
    try:
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as problem:
        said = problem.stderr.strip().partition("\n")[0]
        raise BrokerMissing(f"not in the cache, and {command[0]} does not give it: {said}") from problem
    except OSError as problem:
        raise BrokerMissing(f"not in the cache, and only Debian's {command[0]} gives it: {problem}") from problem
    return done.stdout
