"""Kills, stops and freezes the leader of a cluster under load, over and over, and accounts for each message.

Listeners in several modes, a sender, a sender of units of three and the relay of an outbox use one fail-over list.
After each fault the topology is brought back before the next one. Each run prints one line of JSON.

``PYTHONPATH=tests/support python -m tests.torture.failovers artemis-replication --faults kill stop freeze --rounds 20``
"""

import argparse
import json
import logging
import os
import queue
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from contextlib import contextmanager, suppress
from pathlib import Path

import sqlalchemy as sa
from brokers.broker import BrokerDied
from brokers.clusters import TOPOLOGIES

from jmsjca import ActivationSpec, ConnectionFactory, Hooks, Outcome, Queue, ResourceAdapter
from jmsjca.errors import JMSError, TransactionInDoubtError
from jmsjca.transactions import Outbox, Relay, SqlInbox

ROUNDS = 20
OPTIONS = "?heartbeat=3&connect_timeout=5&reply_timeout=20"
FROZEN = {True: 40.0, False: 12.0}  # seconds until a frozen node continues at the latest, by who can replace it
FROZEN_LONGER = 3.0  # seconds that it stays frozen after messages flow again
FLOW = 240.0  # seconds in which messages must flow again
WHOLE = 90.0  # seconds in which a node that was frozen must be a part again; else it is restarted
QUIET = 4.0
UNIT = 3
MOST_WAITING = 10  # rows, so that a slow machine measures the fail-over and not its backlog
TELL = 20.0  # seconds between two lines about what is idle
SPECS = {
    "serial": {},
    "cc": {"concurrency_mode": "cc", "endpoint_pool_max_size": 4},
    "batches": {"concurrency_mode": "sync", "endpoint_pool_max_size": 2, "batch_size": 5},
    "held": {"concurrency_mode": "cc", "endpoint_pool_max_size": 4, "hold_until_ack": True},
    "inbox": {"transaction": "required"},
    "relay": {},
}
DEAD = "dead"


class Account(Hooks):
    """What was sent, what handlers saw, and how their units ended. A message is ``kind number``."""

    def __init__(self):
        self.began = {}  # when its send began
        self.sent = {}  # ok, doubt or refused
        self.units = []  # of messages that are sent as one
        self.seen = defaultdict(list)  # by kind, in the order of the calls
        self.counts = Counter()  # the highest delivery count
        self.ended = defaultdict(list)  # outcomes
        self.committed = set()
        self.latest = {}  # by kind, when the send of a committed message began
        self.waiting = Counter()  # by kind, what is sent and not committed
        self.moved = []
        self.errors = Counter()
        self._unit = threading.local()

    def around_settlement(self, endpoint, messages, call_next):
        self._unit.ids = [message.body for message in messages if not message.end_of_batch]
        call_next()

    def settled(self, endpoint, outcome, messages):
        for each in getattr(self._unit, "ids", ()):
            self.ended[each].append(outcome)
            if outcome is Outcome.COMMITTED and each not in self.committed:
                kind = each.partition(" ")[0]
                self.committed.add(each)
                self.waiting[kind] -= 1
                self.latest[kind] = max(self.latest.get(kind, 0), self.began[each])
        self._unit.ids = ()

    def dead_lettered(self, endpoint, letter):
        self.moved.append(letter)

    def status_changed(self, endpoint, status):
        if status == "Connecting":
            self.errors[f"{endpoint.partition('.')[0]} connecting"] += 1

    def idle_since(self, moment, kinds):
        """Return the listeners that have not committed a message whose send began later."""
        return [kind for kind in kinds if self.latest.get(kind, 0) <= moment]


class Client:
    """What uses the brokers: ``kinds`` of messages that are sent and handled, and the account of them."""

    def __init__(self, url, label):
        self.url, self.label, self.account = url, label, Account()
        with ConnectionFactory(url).create_connection() as connection:
            capabilities = connection.capabilities
        self.atomic, self.detects = capabilities.atomic, capabilities.duplicate_detection
        self.sender = ResourceAdapter(url)
        self.stopping, self.numbers = threading.Event(), Counter()

    def place(self, kind):
        return f"{kind}.{self.label}"

    def begin(self, kind):
        """Return the body of the next message, whose send begins now."""
        self.numbers[kind] += 1
        body = f"{kind} {self.numbers[kind]}"
        self.account.began[body] = time.monotonic()
        self.account.waiting[kind] += 1
        return body

    @contextmanager
    def noting(self, bodies):
        """Account for a send of one unit."""
        outcome = "refused"
        try:
            yield
            outcome = "ok"
        except TransactionInDoubtError:
            outcome = "doubt"
        except JMSError as error:
            self.account.errors[f"send: {type(error).__name__}: {error}"[:160]] += 1
        if outcome == "refused" and len(bodies) > 1 and not self.atomic:
            outcome = "doubt"  # the first ones may be there
        self.account.sent.update(dict.fromkeys(bodies, outcome))

    def drain(self, place):
        """Take all from a queue; return the bodies, and the duplicate ids behind them."""
        found = []
        with ConnectionFactory(self.url).create_connection() as connection, connection.create_session() as session:
            consumer = session.create_consumer(Queue(place))
            while (message := consumer.receive(1.5)) is not None:
                found.append((message.body, message.properties.get("_AMQ_DUPL_ID", message.message_id)))
        return found


class Load(Client):
    """Everything but Spark that uses the brokers, in this process."""

    def __init__(self, url, label, folder):
        super().__init__(url, label)
        self.kinds = [kind for kind in SPECS if self.atomic or kind != "inbox"]
        self.adapter = ResourceAdapter(url, hooks=[self.account])
        self.held, self.settled = queue.SimpleQueue(), threading.Event()
        self.metadata = sa.MetaData()
        self.effects = sa.Table("effects", self.metadata, sa.Column("body", sa.String))
        self.database = _database(folder / f"inbox-{label}.db")
        self.inbox = SqlInbox(self.database, metadata=self.metadata, endpoint="inbox")
        self.metadata.create_all(self.database)
        outbox = sa.MetaData()
        self.outbox, self.rows = Outbox(outbox), _database(folder / f"outbox-{label}.db")
        outbox.create_all(self.rows)
        self.relay = Relay(self.outbox, ConnectionFactory(url), self.rows, lease=60, poll_interval=0.1)
        tasks = (self._send, self._send_units, self._add_rows, self.relay.run, self._acknowledge)
        self.threads = [threading.Thread(target=self._guarded, args=(task,), daemon=True) for task in tasks]

    def start(self):
        for kind in self.kinds:
            self._listen(kind)
        self.adapter.start()
        for thread in self.threads:
            thread.start()

    def _listen(self, kind):
        account, done = self.account, f"done.{self.place(kind)}"

        def handle(message, session, transaction=None):
            if message.end_of_batch:
                return
            account.seen[kind].append(message.body)
            account.counts[message.body] = max(account.counts[message.body], message.delivery_count)
            if kind == "inbox":
                self.inbox.session(transaction).execute(self.effects.insert().values(body=message.body))
            if self.atomic:
                session.send(done, message.body)

        def on_message(message, session):
            handle(message, session)
            if kind == "held":
                self.held.put(message)

        def on_transaction(message, session, transaction):
            handle(message, session, transaction)

        spec = ActivationSpec(
            destination=self.place(kind), redelivery_handling=f"3:move(queue:{DEAD}.{self.label})", **SPECS[kind]
        )
        if kind == "inbox":
            on_transaction.__annotations__ = {}
            self.adapter.activate(spec, on_transaction, inbox=self.inbox)
        else:
            self.adapter.activate(spec, on_message)

    def _guarded(self, task):
        try:
            task()
        except BaseException as error:
            self.account.errors[f"{task.__name__}: {error!r}"] += 1
            raise

    def _send(self):
        while not self.stopping.is_set():
            for kind in (each for each in self.kinds if each not in {"batches", "relay"}):
                body = self.begin(kind)
                with self.noting([body]):
                    self.sender.send(self.place(kind), body)
                self.stopping.wait(0.03)

    def _send_units(self):
        while not self.stopping.is_set():
            bodies = [self.begin("batches") for _ in range(UNIT)]
            self.account.units.append(bodies)
            with self.noting(bodies):
                self.sender.send_many(self.place("batches"), bodies)
            self.stopping.wait(0.2)

    def _add_rows(self):
        while not self.stopping.is_set():
            if self.account.waiting["relay"] > MOST_WAITING:
                self.stopping.wait(0.1)
                continue
            body = self.begin("relay")
            with self.rows.begin() as connection:
                self.outbox.add(connection, self.place("relay"), body, key="one")
            self.account.sent[body] = "ok"
            self.stopping.wait(0.2)

    def _acknowledge(self):
        while not self.settled.is_set():
            with suppress(queue.Empty, JMSError):
                message = self.held.get(timeout=0.2)
                time.sleep(0.005)
                message.acknowledge()

    def settle(self):
        """Stop sending, and wait until all has been handled and nothing comes any more."""
        self.stopping.set()
        senders, relaying = self.threads[:3], self.threads[3]
        for thread in senders:
            thread.join(60)
        deadline = time.monotonic() + 240
        while self.relay.get_stats().depth and time.monotonic() < deadline:
            time.sleep(0.2)
        self.relay.stop()
        relaying.join(60)
        seen, since = -1, time.monotonic()
        while time.monotonic() - since < QUIET:
            time.sleep(0.5)
            now = sum(map(len, self.account.ended.values()))
            missing = [each for each, how in self.account.sent.items() if how == "ok" and not self.account.ended[each]]
            if now != seen or (missing and time.monotonic() < deadline):
                seen, since = now, time.monotonic()
        self.settled.set()
        self.threads[4].join(10)
        self.adapter.stop()
        self.sender.stop()

    def idle(self, moment):
        """Return the listeners that have not committed a message whose send began later."""
        return self.account.idle_since(moment, self.kinds)

    @property
    def states(self):
        """What the listeners do, for a person who waits."""
        return ", ".join(f"{each.name} {each.status}" for each in self.adapter.activations)


def _database(path):
    engine = sa.create_engine(f"sqlite:///{path}", connect_args={"timeout": 60})
    with engine.begin() as connection:
        connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        connection.exec_driver_sql("PRAGMA synchronous=OFF")  # this process is not killed
    return engine


def kill(topology, node):
    del topology
    node.kill()


def stop(topology, node):
    del topology
    node.stop()


def freeze(topology, node):
    topology.marks[node.number] = node.log_size  # it is passive if it says so afterwards
    node.process.suspend()


FAULTS = {"kill": kill, "stop": stop, "freeze": freeze}


def one_fault(topology, load, name, dice):
    """Do it once; return the seconds until messages flow, whether it took the thaw, and how many were restarted."""
    _await_flow(load, time.monotonic())
    time.sleep(dice.uniform(0, 1))
    node = topology.leader()
    begin = time.monotonic()
    FAULTS[name](topology, node)
    after = time.monotonic()
    if name != "freeze":
        seconds = _await_flow(load, after) - begin
        topology.recover(node)
        return seconds, False, 0
    thawed = False
    try:
        with suppress(TimeoutError):
            seconds = _await_flow(load, after, FROZEN[topology.replaces_frozen]) - begin
            time.sleep(FROZEN_LONGER)
            thawed = True
    finally:
        node.process.resume()
    if not thawed:
        seconds = _await_flow(load, after) - begin
    return seconds, not thawed, _await_thawed(topology, node)


def _await_flow(load, moment, patience=FLOW):
    """Return the moment at which each listener has committed a message whose send began later than another moment."""
    began = told = time.monotonic()
    while idle := load.idle(moment):
        now = time.monotonic()
        if now > began + patience:
            raise TimeoutError(f"idle after {patience} s: {idle}")
        if now > told + TELL:
            print(f"  after {now - began:.0f} s idle: {idle}; {load.states}", file=sys.stderr, flush=True)
            told = now
        time.sleep(0.1)
    return time.monotonic()


def _await_thawed(topology, node):
    """Return how many nodes had to be restarted until the topology could lose a node again."""
    with suppress(BrokerDied):
        topology.await_whole(WHOLE)
        return 0
    node.kill()
    with suppress(BrokerDied):
        topology.recover(node, WHOLE)
        return 1
    leader = topology.leader()
    leader.stop()
    topology.recover(leader)
    return 2


def run(topology, protocol, fault, rounds, seed, folder):
    """Do the faults under load, and give the account."""
    load = Load(topology.url(protocol, OPTIONS), f"{fault}{seed}", folder)
    return fail_over(topology, load, fault, rounds, seed) | judge(load)


def fail_over(topology, load, fault, rounds, seed):
    """Start a client, do the faults, let it settle, and return how long each fault took."""
    dice, seconds, thaws, restarts, stalled = random.Random(f"{seed} {fault}"), [], 0, 0, 0
    load.start()
    for number in range(1, rounds + 1):
        try:
            took, by_thaw, restarted = one_fault(topology, load, fault, dice)
        except TimeoutError as error:
            stalled += 1
            print(f"{topology.name} {fault} {number}: {error}; {load.states}", file=sys.stderr, flush=True)
            for node in topology.nodes:
                if not node.running:
                    topology.recover(node)
            continue
        seconds.append(took)
        thaws, restarts = thaws + by_thaw, restarts + restarted
        print(
            f"{time.strftime('%X')} {time.monotonic():.1f} {topology.name} {fault} {number}: {took:.1f} s"
            f" thaw={by_thaw} restart={restarted}",
            file=sys.stderr,
            flush=True,
        )
    load.settle()
    return {
        "topology": topology.name, "broker": topology.nodes[0].name, "release": topology.nodes[0].release,
        "protocol": load.url.partition(":")[0], "fault": fault, "count": rounds, "seed": seed,
        "median": round(statistics.median(seconds), 1) if seconds else None,
        "p95": round(sorted(seconds)[max(0, round(len(seconds) * 0.95) - 1)], 1) if seconds else None,
        "stalled": stalled, "after_thaw": thaws, "restarted": restarts,
        "seconds": [round(each, 1) for each in seconds],
    }  # fmt: skip


def judge(load):
    """Compare what was confirmed with what was done."""
    account, lost, doubled, again, unexpected = load.account, [], [], [], []
    done = defaultdict(Counter)
    for kind in load.kinds:
        if load.atomic:
            for body, _ in (
                set(load.drain(f"done.{load.place(kind)}"))
                if kind == "inbox"
                else load.drain(f"done.{load.place(kind)}")
            ):
                done[kind][body] += 1
        else:
            for body, outcomes in account.ended.items():
                if body.startswith(f"{kind} "):
                    done[kind][body] = sum(outcome is Outcome.COMMITTED for outcome in outcomes) or len(outcomes)
        lost += [b for b, how in account.sent.items() if b.startswith(f"{kind} ") and how == "ok" and not done[kind][b]]
        for body, times in done[kind].items():
            if times > 1:
                in_doubt = Outcome.IN_DOUBT in account.ended[body] or (kind == "relay" and not load.detects)
                (again if in_doubt else doubled).append(body)
        unexpected += [body for body in done[kind] if account.sent.get(body, "refused") == "refused"]
    with load.database.begin() as connection:
        rows = Counter(body for (body,) in connection.execute(sa.select(load.effects.c.body)))
    doubled += [f"row of {body}" for body, times in rows.items() if times > 1]
    there = set(done["batches"])
    torn = [unit for unit in account.units if load.atomic and 0 < len(there & set(unit)) < len(unit)]
    dead = [body for body, _ in load.drain(f"{DEAD}.{load.label}")]
    names = ("ok", "doubt", "refused")
    how = Counter(account.sent.values())
    return {
        "sent": len(account.sent), **{("confirmed" if name == "ok" else name): how[name] for name in names},
        "handled": sum(len(each) for each in done.values()), "lost": len(lost), "doubled": len(doubled),
        "again": len(again),
        "again_by": Counter(body.partition(" ")[0] for body in again), "torn": len(torn),
        "unexpected": len(unexpected), "disordered": _disordered(account),
        "units_in_doubt": sum(Outcome.IN_DOUBT in each for each in account.ended.values()),
        "units_lost": sum(Outcome.LOST in each for each in account.ended.values()),
        "highest_count": max(account.counts.values(), default=0), "dead": len(dead), "moved": len(account.moved),
        "errors": dict(account.errors),
        "examples": [_story(account, body) for body in [*lost, *doubled, *unexpected, *dead][:12]],
    }  # fmt: skip


def _story(account, body):
    """Tell what is known of a message: sent, seen, how its units ended."""
    ended = " ".join(outcome.value for outcome in account.ended[body])
    seen = account.seen[body.partition(" ")[0]].count(body)
    return f"{body}: {account.sent.get(body)} at {account.began.get(body, 0):.1f}, seen {seen}, {ended}"


def _disordered(account):
    """Count messages of the serial listener that were first seen after a later one; sends in doubt do not count."""
    highest = wrong = 0
    for body in dict.fromkeys(account.seen["serial"]):
        number = int(body.partition(" ")[2])
        if account.sent.get(body) == "ok":
            wrong += number < highest
            highest = max(highest, number)
    return wrong


def arguments(description):
    """Return what the command line asks for, and silence the library."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("topologies", nargs="+", choices=TOPOLOGIES, metavar="TOPOLOGY")
    parser.add_argument("--protocol", default="amqp", choices=["amqp", "stomp"])
    parser.add_argument("--faults", nargs="+", default=list(FAULTS), choices=FAULTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    logging.getLogger("jmsjca").setLevel(logging.CRITICAL)
    return parser.parse_args()


def main():
    """Run the topologies one after the other; 0 if nothing was lost or doubled."""
    options = arguments(__doc__)
    logging.getLogger("jmsjca.transactions").setLevel(logging.WARNING)  # the relay
    good = True
    for name in options.topologies:
        with tempfile.TemporaryDirectory(prefix="jmsjca-failovers-") as folder:
            topology = TOPOLOGIES[name]()
            try:
                topology.start()
                for fault in options.faults:
                    result = run(topology, options.protocol, fault, options.rounds, options.seed, Path(folder))
                    print(json.dumps(result), flush=True)
                    good = good and not (result["lost"] or result["doubled"] or result["torn"] or result["stalled"])
            finally:
                if os.environ.get("JMSJCA_KEEP_LOGS"):
                    for node in (each for each in topology.nodes if each.log.exists()):
                        shutil.copy(node.log, f"{os.environ['JMSJCA_KEEP_LOGS']}/{name}-{node.number}.log")
                topology.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
