"""PostgreSQL for tests: Debian's package, unpacked into the cache, and run by a user without rights."""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from brokers.broker import LOOK_SECONDS, START_SECONDS, Broker, BrokerDied
from brokers.debian import unpack_packages
from brokers.ports import HOST
from brokers.provisioning import BrokerMissing, provide

NOBODY = 65534
USER = "jmsjca"

# What the server and initdb load beside the C library; Debian 12 has these names.
LIBRARIES = (
    "libpq5 libicu72 libxml2 libldap-2.5-0 libsasl2-2 liblz4-1 libzstd1 libssl3 libgssapi-krb5-2 libkrb5-3 "
    "libk5crypto3 libcom-err2 libkrb5support0 libkeyutils1 libsystemd0 libcap2 libgcrypt20 libgpg-error0 libpam0g "
    "libaudit1 libcap-ng0 libgnutls30 libp11-kit0 libidn2-0 libunistring2 libtasn1-6 libnettle8 libhogweed6 libgmp10 "
    "libffi8 liblzma5 zlib1g"
)


UNUSED = ("usr/share/doc", "usr/share/locale", "usr/share/man", "usr/lib/postgresql/*/lib/bitcode")


class PostgreSQL(Broker):
    """A database server, started and killed as the brokers are."""

    name, release = "postgresql", "15"
    usual_ports = {"sql": 5433}  # noqa: RUF012

    def install(self):
        try:
            return provide(f"{self.name}-{self.release}", self._unpack)
        except BrokerMissing:
            if not self._programs(Path("/")).exists():
                raise
            return Path("/")  # what is installed here will do

    def command(self, home):
        home = self._readable(home)
        data, programs = self.folder / "data", self._programs(home)
        environment = {"LC_ALL": "C", "PATH": os.environ.get("PATH", os.defpath), **self._libraries(home)}
        if not data.exists():
            self._initialize(data, programs, environment)
        server = [programs / "postgres", "-D", data, "-c", f"config_file={self.folder}/conf/postgresql.conf"]
        return [*self._user(), *map(str, server)], environment

    def stop(self):
        """Kill the server: a shutdown would wait for its clients."""
        self.kill()

    def kill(self):
        if self.running:
            self.process.suspend()  # it would start other processes, which keep the next server from starting
        super().kill()

    def url(self, protocol="sql"):
        return f"postgresql+psycopg://{USER}@{HOST}:{self.ports[protocol]}/postgres"

    def _unpack(self, draft):
        unpack_packages([f"postgresql-{self.release}", *LIBRARIES.split()], draft)
        for unused in UNUSED:
            for folder in draft.glob(unused):
                shutil.rmtree(folder)

    def _programs(self, home):
        return home / "usr" / "lib" / "postgresql" / self.release / "bin"

    def _libraries(self, home):
        if home == Path("/"):
            return {}
        folders = [*home.glob("usr/lib/*-linux-gnu"), *home.glob("lib/*-linux-gnu")]
        return {"LD_LIBRARY_PATH": ":".join(map(str, folders))}

    def _user(self):
        """Return the words that run a command without the rights of root, which the server refuses."""
        if os.geteuid():
            return []
        return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]

    def _readable(self, home):
        """Return a copy of the programs for a user that cannot read root's cache."""
        if os.geteuid() or home == Path("/"):
            return home
        copy = self.folder / "programs"
        if not copy.exists():
            shutil.copytree(home, copy, symlinks=True)
            copy.chmod(0o755)  # the cache's folder is its owner's alone
        return copy

    def _initialize(self, data, programs, environment):
        data.mkdir()
        if not os.geteuid():
            os.chown(self.folder, NOBODY, NOBODY)
            os.chown(data, NOBODY, NOBODY)
        options = ["--auth=trust", f"--username={USER}", "--encoding=UTF8", "--locale=C", "--no-sync"]
        done = subprocess.run(
            [*self._user(), str(programs / "initdb"), "-D", str(data), *options],
            env=environment, cwd=self.folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise BrokerDied(f"initdb failed: {done.stdout[-1000:]}{done.stderr[-1000:]}")

    def _await_ready(self):
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if not self.running or time.monotonic() > deadline:
                self.kill()
                raise BrokerDied(f"PostgreSQL did not start. The end of {self.log}:\n{self.log_tail()}")
            time.sleep(LOOK_SECONDS)

    def _answers(self):
        """Return True once the server takes a session; while it starts it answers with an error."""
        import psycopg  # here, as only these tests need it

        try:
            socket.create_connection((HOST, self.ports["sql"]), timeout=1).close()
            psycopg.connect(host=HOST, port=self.ports["sql"], user=USER, dbname="postgres").close()
        except (OSError, psycopg.OperationalError):
            return False
        return True
