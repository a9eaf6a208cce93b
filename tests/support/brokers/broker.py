"""One broker: its folder, its ports and its process."""

import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

from brokers import reaper, state
from brokers.configuration import write_configuration
from brokers.handshake import LOGINS, serves
from brokers.ports import HOST, free_ports, is_free

START_SECONDS = 120
STOP_SECONDS = 30
LOOK_SECONDS = 0.05  # between two looks whether it serves


class BrokerDied(Exception):  # noqa: N818  # says what happened
    """A broker did not start; the message ends with the last lines of its log."""


class Broker:
    """What all brokers have in common; subclasses say how theirs is installed, configured and run."""

    name = release = ""
    usual_ports: dict[str, int]  # by protocol

    def __init__(self, folder=None):
        """Take the broker of a folder, running or not, or make one in a new temporary folder."""
        self.temporary = not folder
        self.folder = Path(folder or tempfile.mkdtemp(prefix=f"jmsjca-{self.name}-"))
        self.log = self.folder / "broker.log"
        self.ports, self.process = state.recall(self.folder)

    def install(self):
        """Return the folder of the software; what is not in the cache is downloaded."""
        raise NotImplementedError

    def command(self, home):
        """Return the command that runs the broker of the folder ``home`` in the foreground, and its environment."""
        raise NotImplementedError

    def start(self, *, usual_ports=False):
        """Start the broker, again on the same ports and data, and return when it serves every protocol.

        A broker that runs is left as it is.
        """
        if self.running:
            return self
        home = self.install()
        if not self.usual_ports.keys() <= self.ports.keys():  # new, or an earlier revision knew fewer protocols
            self.ports = self._choose_ports(usual_ports) | self.ports
        write_configuration(self)
        command, environment = self.command(home)
        with self.log.open("ab") as log:
            self.process = psutil.Popen(
                command, env=environment, cwd=self.folder, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
        state.remember(self.folder, self.ports, self.process)
        if self.temporary:
            reaper.watch(self.process, self.folder)
        self._await_ready()
        return self

    def stop(self):
        """Let the broker shut down; one that does not is killed."""
        if self.running:
            self.process.terminate()
            _, alive = psutil.wait_procs([self.process], timeout=STOP_SECONDS)
            if alive:
                self.kill()

    def kill(self):
        """End the broker and its children at once with SIGKILL, and return when it is gone."""
        if self.running:
            children = [*self._children()]
            for process in (*children, self.process):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            self.process.wait()
            psutil.wait_procs(children, STOP_SECONDS)  # which may hold ports and memory that the next start needs

    def restart(self):
        """Start the broker again, on the same ports and data. One that still runs is stopped before."""
        self.stop()
        return self.start()

    def url(self, protocol):
        """Return the URL of a protocol: ``amqp``, ``stomp`` …."""
        return f"{protocol.partition('-')[0]}://{HOST}:{self.ports[protocol]}"

    @property
    def running(self):
        """Whether the process is there."""
        return state.is_alive(self.process)

    def log_tail(self, lines=40):
        """Return the last lines of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""

    def _children(self):
        with suppress(psutil.NoSuchProcess):
            return self.process.children(recursive=True)
        return []

    def _choose_ports(self, usual):
        free = free_ports()
        return {
            protocol: port if usual and is_free(port) else next(free) for protocol, port in self.usual_ports.items()
        }

    def _await_ready(self):
        deadline = time.monotonic() + START_SECONDS
        while not all(serves(protocol, port) for protocol, port in self.ports.items() if protocol in LOGINS):
            if not self.running:
                self.process.wait()
                raise BrokerDied(f"{self.name} died on start. The end of {self.log}:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                self.kill()
                raise BrokerDied(f"{self.name} served nothing in time. The end of {self.log}:\n{self.log_tail()}")
            time.sleep(LOOK_SECONDS)
