"""Several brokers that stand in for each other, with small heaps, on loopback.

A topology has ``nodes`` and gives one fail-over list for them. Its leader is the node that a test kills, stops or
freezes; `Topology.recover` brings that node back and returns when the topology can lose a node again.
"""

import secrets
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

from brokers import reaper
from brokers.broker import Broker, BrokerDied
from brokers.handshake import serves
from brokers.ports import HOST, free_ports
from brokers.products import ActiveMQ, Artemis
from brokers.provisioning import download_all, java, provide
from brokers.rabbitmq import NODE, RabbitMQ4

PATIENCE = 400.0  # seconds until a topology must be whole
LOOK_SECONDS = 0.1
HEAP = "-Xmx192m"


class Node:
    """Mixed into a broker: a small heap, a configuration that the topology changes, and a start that does not wait."""

    topology: "Topology"

    def command(self, home):
        self.topology.configure(self)
        command, environment = super().command(home)
        return [HEAP if word.startswith("-Xmx") else word for word in command], environment

    def change(self, file, *replacements):
        """Replace texts of a file of the configuration."""
        path = self.folder / "conf" / file
        text = path.read_text()
        for old, new in replacements:
            assert old in text, old
            text = text.replace(old, new)
        path.write_text(text)

    @property
    def serves(self):
        """Whether clients can log in. A frozen node does not, nor one that waits for its turn."""
        return self.running and serves("amqp", self.ports["amqp"])

    def logged(self, text, since=0):
        """Return whether the log has a text behind so many characters."""
        return text in self.log.read_text(errors="replace")[since:] if self.log.exists() else False

    @property
    def log_size(self):
        return len(self.log.read_text(errors="replace")) if self.log.exists() else 0

    def _await_ready(self):
        """Return at once: the topology waits, since a node that is passive serves nothing."""


class Topology:
    """Nodes of one kind. Subclasses say how they are connected."""

    name = ""
    node: type[Broker]
    count = 2
    more_ports: tuple[str, ...] = ()
    replaces_frozen = True  # whether another node takes over from a frozen one; the lock of a shared file is kept by it
    helper = None  # the process of what the nodes need besides themselves

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix=f"jmsjca-{self.name}-"))
        self.free = free_ports()
        self.marks = {}
        self.nodes = []
        for number in range(1, self.count + 1):
            node = type(f"{self.node.__name__}Node", (Node, self.node), {})()
            node.topology, node.number = self, number
            node.ports = {each: next(self.free) for each in (*self.node.usual_ports, *self.more_ports)}
            self.nodes.append(node)

    def start(self):
        for node in self.nodes:
            self._start_node(node)
            _await(f"{self.name}: node {node.number}", lambda node=node: self.is_up(node), self.nodes)
        self.await_whole()
        return self

    def configure(self, node):
        """Change the configuration of a node, each time before it starts."""

    def is_up(self, node):
        """Say whether a node has started: it serves, or it waits for the other one's end."""
        return node.serves or self.is_passive(node)

    def is_passive(self, node):
        del node
        return False

    def is_whole(self):
        """Say whether each node may now be lost."""
        return sum(node.serves for node in self.nodes) == 1 and all(map(self.is_up, self.nodes))

    def await_whole(self, patience=PATIENCE):
        _await(f"{self.name}: all nodes", self.is_whole, self.nodes, patience)

    def leader(self):
        """Return the node that serves."""
        return next(node for node in self.nodes if node.serves)

    def recover(self, node, patience=PATIENCE):
        """Start a node that was killed or stopped; return when the topology can lose a node again."""
        self._start_node(node)
        self.await_whole(patience)

    def url(self, protocol="amqp", options=""):
        """Return the fail-over list of all nodes."""
        hosts = ",".join(f"{HOST}:{node.ports[protocol]}" for node in self.nodes)
        return f"{protocol}://{hosts}{options}"

    def close(self):
        """End all nodes and remove what is theirs."""
        for node in self.nodes:
            with suppress(psutil.NoSuchProcess):
                node.kill()
            shutil.rmtree(node.folder, ignore_errors=True)
        if self.helper:
            self.helper.kill()
            self.helper.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run_helper(self, command):
        with (self.folder / "helper.log").open("ab") as log:
            self.helper = psutil.Popen(command, cwd=self.folder, start_new_session=True, stdout=log, stderr=log)
        reaper.watch(self.helper, self.folder)

    def _start_node(self, node):
        self.marks[node.number] = node.log_size
        node.start()

    def _logged(self, node, *texts):
        """Say whether a node has logged one of the texts since it was started last."""
        return node.running and any(node.logged(text, self.marks[node.number]) for text in texts)


def _await(what, condition, nodes, patience=PATIENCE):
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            logs = "\n".join(f"== {node.log}\n{node.log_tail()}" for node in nodes)
            raise BrokerDied(f"{what}: not there in time.\n{logs}")
        time.sleep(LOOK_SECONDS)


# What finds out in some seconds that the other node is frozen; the defaults are 30 and 60 seconds.
CLUSTER = """
    <cluster-user>cluster</cluster-user>
    <cluster-password>cluster</cluster-password>
    <connectors>
      <connector name="self">tcp://{host}:{own}</connector>
      <connector name="other">tcp://{host}:{other}</connector>
    </connectors>
    <cluster-connections>
      <cluster-connection name="cluster">
        <connector-ref>self</connector-ref>
        <check-period>1000</check-period>
        <connection-ttl>5000</connection-ttl>
        <retry-interval>200</retry-interval>
        <message-load-balancing>{balancing}</message-load-balancing>
        <static-connectors><connector-ref>other</connector-ref></static-connectors>
      </cluster-connection>
    </cluster-connections>
    {policy}
  </core>"""


class ArtemisTopology(Topology):
    """Two Artemis that know each other."""

    node, more_ports, balancing = Artemis, ("core",), "OFF"

    def policy(self, node):
        """Return the element ``ha-policy``."""
        del node
        return ""

    def configure(self, node):
        (other,) = (each for each in self.nodes if each is not node)
        cluster = CLUSTER.format(
            host=HOST, own=node.ports["core"], other=other.ports["core"],
            balancing=self.balancing, policy=self.policy(node),
        )  # fmt: skip
        core = f'<acceptor name="core">tcp://{HOST}:{node.ports["core"]}?protocols=CORE</acceptor>\n      </acceptors>'
        node.change("broker.xml", ("</acceptors>", core), ("</core>", cluster.lstrip()))


class ArtemisReplication(ArtemisTopology):
    """A primary and a backup with a copy of its journal. ZooKeeper has the lock of the one that may be active.

    Without it both are active after the primary was frozen: see `ArtemisPair`.
    """

    name = "artemis-replication"
    MANAGER = """
      <manager>
        <class-name>org.apache.activemq.artemis.lockmanager.zookeeper.CuratorDistributedLockManager</class-name>
        <properties>
          <property key="connect-string" value="{host}:{port}"/>
          <property key="session-ms" value="6000"/>
          <property key="session-percent" value="33"/>
          <property key="connection-ms" value="3000"/>
          <property key="retries" value="1"/>
          <property key="retries-ms" value="500"/>
        </properties>
      </manager>"""

    def start(self):
        self.keeper = next(self.free)
        more = provide("zookeeper-3.9.5", lambda draft: download_all("zookeeper", draft))
        jars = f"{self.nodes[0].install()}/lib/*:{more}/*"
        settings = {"zookeeper.admin.enableServer": "false", "zookeeper.clientPortAddress": HOST}
        (self.folder / "zoo.cfg").write_text(
            f"tickTime=1000\ndataDir={self.folder}/zoo\nclientPort={self.keeper}\nclientPortAddress={HOST}\n"
        )
        command = java(jars, settings, "org.apache.zookeeper.server.ZooKeeperServerMain", f"{self.folder}/zoo.cfg")
        self.run_helper(["-Xmx64m" if word.startswith("-Xmx") else word for word in command])
        return super().start()

    def policy(self, node):
        manager = self.MANAGER.format(host=HOST, port=self.keeper)
        role = f"<primary>{manager}</primary>" if node.number == 1 else f"<backup>{manager}{STAYS}</backup>"
        return f"<ha-policy><replication>{role}</replication></ha-policy>"

    def is_passive(self, node):
        return self._logged(node, "AMQ221024")  # the copy is complete


STAYS = "<allow-failback>false</allow-failback>"


class ArtemisPair(ArtemisTopology):
    """A primary and a backup with a copy of its journal, and nothing that knows which one may be active."""

    name = "artemis-pair"

    def policy(self, node):
        checks = "<check-for-active-server>true</check-for-active-server>"
        role = f"<primary>{checks}</primary>" if node.number == 1 else f"<backup>{STAYS}</backup>"
        return f"<ha-policy><replication>{role}</replication></ha-policy>"

    def is_passive(self, node):
        return self._logged(node, "AMQ221024")


class ArtemisSharedStore(ArtemisTopology):
    """A primary and a backup with one journal, whose lock the active one has."""

    name = "artemis-shared-store"
    replaces_frozen = False

    def policy(self, node):
        stops = "<failover-on-shutdown>true</failover-on-shutdown>"
        role = f"<primary>{stops}</primary>" if node.number == 1 else f"<backup>{stops}{STAYS}</backup>"
        return f"<ha-policy><shared-store>{role}</shared-store></ha-policy>"

    def configure(self, node):
        super().configure(node)
        node.change("broker.xml", (f"{node.folder}/data", f"{self.folder}/data"))

    def is_passive(self, node):
        return self._logged(node, "AMQ221032", "AMQ221034", "AMQ221035") and not node.serves


class ArtemisCluster(ArtemisTopology):
    """Two active nodes. Messages move to the node that has consumers."""

    name, balancing = "artemis-cluster", "ON_DEMAND"

    def configure(self, node):
        super().configure(node)
        pages = "<address-full-policy>PAGE</address-full-policy>"
        node.change("broker.xml", (pages, f"<redistribution-delay>0</redistribution-delay>{pages}"))

    def is_whole(self):
        return all(node.serves for node in self.nodes)


class ActiveMQSharedStore(Topology):
    """A master, and a slave that waits for the lock of the store."""

    name, node = "activemq-shared-store", ActiveMQ
    replaces_frozen = False

    def configure(self, node):
        store = f"{self.folder}/data"
        locker = '<locker><shared-file-locker lockAcquireSleepInterval="500"/></locker></kahaDB>'
        node.change(
            "activemq.xml",
            (f'dataDirectory="{node.folder}/data"', f'dataDirectory="{store}"'),
            (
                f'{node.folder}/data/kahadb" journalMaxFileLength="4mb"/>',
                f'{store}/kahadb" journalMaxFileLength="4mb">{locker}',
            ),
        )

    def is_passive(self, node):
        return self._logged(node, "could not be locked", "is locked") and not node.serves


class ActiveMQNetwork(Topology):
    """Two brokers that pass messages to the one that has consumers."""

    name, node = "activemq-network", ActiveMQ

    def configure(self, node):
        (other,) = (each for each in self.nodes if each is not node)
        network = (
            f'<networkConnectors><networkConnector uri="static:(tcp://{HOST}:{other.ports["openwire"]})"'
            ' prefetchSize="1"/></networkConnectors>'
        )
        node.change(
            "activemq.xml",
            ('brokerName="activemq"', f'brokerName="activemq{node.number}"'),
            ("<persistenceAdapter>", f"{network}\n    <persistenceAdapter>"),
        )

    def is_whole(self):
        return all(node.serves for node in self.nodes)


class RabbitMQCluster(Topology):
    """Three nodes of RabbitMQ 4, each queue with a copy on each. A port mapper of their own knows their ports."""

    name, node, count, more_ports = "rabbitmq4-quorum", RabbitMQ4, 3, ("nodes",)
    TICK_SECONDS = 16  # after it a silent node is given up; the default is 60

    def start(self):
        self.cookie, self.mapper = secrets.token_hex(), next(self.free)
        (self.programs,) = (self.nodes[0].install() / "usr/lib/erlang").glob("erts-*/bin")
        self.run_helper([str(self.programs / "epmd"), "-port", str(self.mapper), "-address", HOST])
        for node in self.nodes:
            command, distribution = node.command, self._distribution(node)
            node.distribution = lambda told=distribution: told
            node.command = lambda home, command=command, node=node: self._named(command(home), node)
        return super().start()

    def _start_node(self, node):
        is_new = not node.log.exists()
        super()._start_node(node)
        if is_new and node.number > 1:
            _await(f"{self.name}: node {node.number}", lambda: self.is_up(node), self.nodes)
            done = self.evaluate(
                node, f"rabbit:stop(), R = rabbit_db_cluster:join('{_rabbit(self.nodes[0])}', disc), rabbit:start(), R"
            )  # as rabbitmqctl join_cluster does
            if done != "ok":
                raise BrokerDied(f"node {node.number} did not join: {done}\n{node.log_tail()}")

    def configure(self, node):
        told = "log.file = false"
        node.change("rabbitmq.conf", (told, f"{told}\ncluster_partition_handling = pause_minority"))

    def is_whole(self):
        if not all(node.serves for node in self.nodes):
            return False
        return self.evaluate(
            self.nodes[0], "length(rabbit_nodes:list_running()) =:= 3 andalso lists:all(fun(N) ->"
            " rpc:call(N, rabbit_quorum_queue, list_with_minimum_quorum, []) =:= [] end, rabbit_nodes:list_running())",
        ) == "true"  # fmt: skip

    def leader(self):
        """Return the node that leads most queues."""
        for node in self.nodes:
            leaders = node.serves and self.evaluate(
                node, "[L || Q <- rabbit_amqqueue:list(), {_, L} <- [amqqueue:get_pid(Q)]]"
            )
            if leaders is not False:
                return max(self.nodes, key=lambda each, told=leaders: told.count(_rabbit(each)))
        raise BrokerDied("no node serves")

    def evaluate(self, node, expression):
        """Return what an expression of Erlang gives in a node, as text."""
        parsed = (
            f"{{ok, T, _}} = erl_scan:string({_quoted(expression + '.')}), {{ok, E}} = erl_parse:parse_exprs(T),"
            f" case rpc:call('{_rabbit(node)}', erl_eval, exprs, [E, []], 60000) of"
            ' {value, V, _} -> io:format("~p", [V]); Other -> io:format("failed ~p", [Other]) end, halt(0).'
        )
        command, environment = node.command(node.install())
        me = ["-sname", f"asks{secrets.token_hex(4)}@localhost", "-setcookie", self.cookie, "-hidden", *self._tick()]
        done = subprocess.run(
            [command[0], "-noinput", "-start_epmd", "false", *me, "-eval", parsed], env=environment, timeout=90,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.stdout

    def _distribution(self, node):
        port = node.ports["nodes"]
        return [
            *("-start_epmd", "false", "-setcookie", self.cookie, "-kernel", "inet_dist_use_interface", "{127,0,0,1}"),
            *("-kernel", "inet_dist_listen_min", str(port), "-kernel", "inet_dist_listen_max", str(port)),
            *self._tick(),
        ]

    def _tick(self):
        return "-kernel", "net_ticktime", str(self.TICK_SECONDS)

    def _named(self, told, node):
        command, environment = told
        name = _rabbit(node)
        more = {"RABBITMQ_NODENAME": name, "ERL_EPMD_PORT": str(self.mapper), "ERL_EPMD_ADDRESS": HOST}
        return [name if word == NODE else word for word in command], {**environment, **more}


def _rabbit(node):
    return f"rabbit{node.number}@localhost"


def _quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


TOPOLOGIES = {
    each.name: each
    for each in (
        ArtemisReplication, ArtemisPair, ArtemisSharedStore, ArtemisCluster,
        ActiveMQSharedStore, ActiveMQNetwork, RabbitMQCluster,
    )
}  # fmt: skip
