"""RabbitMQ for tests: the release of Debian 12, and that of the next Debian, which speaks AMQP 1.0 by itself."""

import os
from pathlib import Path

from brokers.broker import Broker
from brokers.debian import unpack_packages, use_own_loader
from brokers.provisioning import BrokerMissing, provide

# All of Erlang that RabbitMQ needs; the rest of it is large.
ERLANG = "asn1 base crypto eldap inets mnesia os-mon parsetools public-key runtime-tools ssl syntax-tools tools xmerl"


class RabbitMQ(Broker):
    """Erlang runs it directly: Debian's scripts want the user rabbitmq and folders of the system."""

    name, release = "rabbitmq", "3.10.8"
    usual_ports = {"amqp": 5674, "stomp": 61615}  # noqa: RUF012

    def install(self):
        try:
            return provide(f"{self.name}-{self.release}", self._unpack)
        except BrokerMissing:
            if not self._servers(Path("/")):
                raise
            return Path("/")  # what is installed here will do

    def command(self, home):
        (erts,) = (home / "usr/lib/erlang").glob("erts-*")
        (server,) = self._servers(home)
        command = [str(erts / "bin" / "erlexec"), *ARGUMENTS, "-sname", NODE, *self.distribution()]
        return command, {**os.environ, **self._environment(erts, server)}

    def distribution(self):
        """Return the arguments that let Erlang have no port for other nodes."""
        return ALONE

    def _unpack(self, draft):
        unpack_packages(self._packages(), draft)

    def _packages(self):
        return [f"rabbitmq-server={self.release}*", *(f"erlang-{part}" for part in ERLANG.split())]

    def _servers(self, root):
        series = self.release.partition(".")[0]
        return list(root.glob(f"usr/lib/rabbitmq/lib/rabbitmq_server-{series}.*"))

    def _environment(self, erts, server):
        conf, data = self.folder / "conf", self.folder / "data"
        paths = {
            "HOME": self.folder,  # the cookie is kept here
            "ROOTDIR": erts.parent,
            "BINDIR": erts / "bin",
            "ERL_LIBS": server / "plugins",
            "ERL_CRASH_DUMP": self.folder / "erl_crash.dump",
            "RABBITMQ_HOME": server,
            "RABBITMQ_BASE": data,
            "RABBITMQ_LOG_BASE": data / "log",  # what is not in the log of the standard output
            "RABBITMQ_MNESIA_BASE": data / "mnesia",
            "RABBITMQ_GENERATED_CONFIG_DIR": data / "config",
            "RABBITMQ_FEATURE_FLAGS_FILE": data / "feature_flags",
            "RABBITMQ_CONFIG_FILE": conf / "rabbitmq.conf",
            "RABBITMQ_ADVANCED_CONFIG_FILE": conf / "advanced.config",
            "RABBITMQ_ENABLED_PLUGINS_FILE": conf / "enabled_plugins",
            "RABBITMQ_PLUGINS_DIR": server / "plugins",
        }
        return {**WORDS, **{name: str(path) for name, path in paths.items()}}


# What the programs of RabbitMQ 4 load, and the program that loads them: this machine's may be older.
LIBRARIES = ("libc6", "libgcc-s1", "libssl3t64", "libstdc++6", "libtinfo6", "libzstd1", "zlib1g")


class RabbitMQ4(RabbitMQ):
    """The release of Debian 13, whose programs may need a newer C library than this machine has."""

    name, release = "rabbitmq4", "4.0.5"
    usual_ports = {"amqp": 5677, "stomp": 61617}  # noqa: RUF012

    def _unpack(self, draft):
        unpack_packages([*self._packages(), *LIBRARIES], draft, release="trixie")
        use_own_loader(draft, "usr/lib/erlang")


NODE = "rabbit@localhost"

# The variables that Debian's scripts would set.
WORDS = {
    "EMU": "beam",
    "PROGNAME": "erl",
    "ERL_MAX_ETS_TABLES": "50000",
    "RABBITMQ_NODENAME": NODE,
    "RABBITMQ_LOGS": "-",  # to the standard output
    "RABBITMQ_CONF_ENV_FILE": "/dev/null",
}

# As Debian's script does it, but without epmd, which would stay behind.
ALONE = ["-start_epmd", "false", "-erl_epmd_port", "1", "-dist_listen", "false"]
ARGUMENTS = [
    *("-noinput", "-s", "rabbit", "boot", "-boot", "start_sasl", "+W", "w", "+B", "i"),
    *("+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"),  # do not burn the processor while waiting
    *("-syslog", "logger", "[]", "-syslog", "syslog_error_logger", "false"),
    *("-kernel", "prevent_overlapping_partitions", "false"),
]
