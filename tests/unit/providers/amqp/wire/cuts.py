"""Cut the connection at every frame of a job, and compare the reported outcome with the state of the broker.

``python -m tests.unit.providers.amqp.wire.cuts`` visits each point; the tests visit a sample. The points are the frames
of an undisturbed run: before and after each frame of the client; before, inside and after each frame of the broker.
"""

import itertools
import sys
from collections import Counter

from amqp_peer import Broker, Cut, Peer
from amqp_peer.performatives import RECEIVER, Accepted, Declare, Discharge, Disposition, Transfer
from amqp_peer.script import command_of

from jmsjca.errors import ConnectionLostError
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.providers.amqp.wire.cut_account import JOBS, MESSAGES, Account, body_of, encoded

__all__ = ["CELLS", "SILENT_CELLS", "Run", "points"]

_PRODUCTS = ("apache-activemq-artemis", "ActiveMQ", "Apache Qpid Broker-J Core", "RabbitMQ")
_MOMENTS = {"up": ("before", "after"), "down": ("before", "inside", "after")}
_SILENT = {"up": ("silent",), "down": ("silent",)}
_OPENING = {"up": 6, "down": 7}  # frames up to the first link; how many come when credit is given depends on time
_PATIENCE = 0.3  # seconds for an answer that does not come
_QUEUES = {"ActiveMQ": "queue://{}", "RabbitMQ": "/queue/{}"}

_TAKING = ("receive", "wait", "browse")  # jobs that send nothing

CELLS = tuple(cell for cell in itertools.product(_PRODUCTS, JOBS) if cell != ("RabbitMQ", "browse"))
SILENT_CELLS = (("apache-activemq-artemis", "move"), ("RabbitMQ", "move"))


class Run:
    """A job over a connection that is cut, and the same job again until nothing is left.

    Args:
        product: What the broker calls itself.
        job: The name of the job.
        cut: Where; None for nowhere.
    """

    def __init__(self, product, job, cut=None):
        self.product, self.job, self.cut = product, job, cut
        self.account = Account()
        self.broker = Broker(product)
        self._told = []
        self._source, self._target = (_QUEUES.get(product, "{}").format(name) for name in ("in", "out"))
        if job != "send":
            for number in range(MESSAGES):
                self.broker.store.put(self._source, encoded(str(number)))

    def play(self):
        """Do it all, and check everything."""
        peer = self.peer = Peer(self.broker)
        try:
            peer.cut = self.cut
            self._play_to_the_cut(peer)
            self._between(peer)
            while self._left():
                self.account.run(JOBS[self.job], lambda: self._connect(peer))
                assert len(peer.lines) < 6, "it never ends"
            self._at_the_end()
        finally:
            peer.close()
        return self

    def _play_to_the_cut(self, peer):
        patience = _PATIENCE if self.cut and self.cut.moment == "silent" else None
        options = f"&reply_timeout={patience}&connect_timeout={patience}" if patience else ""
        self.account.run(JOBS[self.job], lambda: self._connect(peer, options), patience)

    @property
    def sprung(self):
        """True if the cut was reached."""
        return self.cut is not None and self.peer.lines[0].counts[self.cut.direction] > self.cut.index

    @property
    def must_spring(self):
        """True if every run has the place of the cut: while a connection opens, and while it only sends."""
        if self.cut.moment == "silent":  # patience may end before that
            return False
        return self.job == "send" or self.cut.index < _OPENING[self.cut.direction]

    def _connect(self, peer, options=""):
        return connect(ConnectionSettings(f"amqp://{peer.address}?heartbeat=0{options}"), self._told.append)

    def _between(self, peer):
        """Directly after the cut."""
        self._connect(peer).close()  # so the broker has noticed the end of the first one
        account, moved, left = self.account, self._moved(), self._left()
        for what in account.known:
            assert self._happened(what, moved, left), f"{what} was committed, and is not"
        for what in account.rolled_back:
            assert self._did_not_happen(what, moved, left), f"{what} was rolled back, and is not"
        if self._is_atomic():
            for what in account.in_doubt:
                assert self._happened(what, moved, left) or self._did_not_happen(what, moved, left), "a half happened"
            self._check_honesty(peer.lines[0].frames)
        if account.finished and self.job != "send":
            assert len(account.received) == MESSAGES, "a queue seemed empty, and was not"
        assert all(type(error) is ConnectionLostError for error in account.lost), account.lost
        assert len(self._told) <= 1

    def _at_the_end(self):
        moved = self._moved()
        everything = [str(number) for number in range(MESSAGES)]
        wanted = self.account.known if self.job == "send" else [] if self.job in _TAKING else everything
        assert not self._left()
        assert all(moved[f"moved {what}"] for what in wanted), "lost"
        if self._is_atomic():
            assert max(moved.values()) == 1, "there twice"
        known = Counter(self.account.known)
        assert not known or max(known.values()) == 1, "delivered again after a commit that was known"

    def _check_honesty(self, frames):
        """A commit is in doubt if the broker was asked for it and the answer did not arrive, and only then."""
        known, in_doubt = len(self.account.known), len(self.account.in_doubt)
        asked = [frame for frame in frames if _commits(frame)]
        answered = [frame for frame in asked if any(_answers(answer, frame) for answer in frames)]
        declared = [frame for frame in frames if isinstance(_command(frame), Declare)]
        assert len(asked) <= known + in_doubt, "told as rolled back, and the broker was asked to commit"
        assert in_doubt <= max(len(declared) - known, 0), "in doubt, and never asked for"
        if self.cut is None or self.cut[::2] == ("down", "after"):
            assert known == len(answered), "the answer arrived, and is not known"

    def _is_atomic(self):
        return self.product != "RabbitMQ" and self.job in {"move", "batch"}

    def _happened(self, what, moved, left):
        numbers = range(MESSAGES) if what == "all" else [int(what)]
        sent = self.job in _TAKING or all(moved[f"moved {n}"] for n in numbers)
        return sent and not any(left[str(n)] for n in numbers)

    def _did_not_happen(self, what, moved, left):
        numbers = range(MESSAGES) if what == "all" else [int(what)]
        back = self.job == "send" or all(left[str(n)] for n in numbers)
        return back and not any(moved[f"moved {n}"] for n in numbers)

    def _moved(self):
        return Counter(body_of(kept.payload) for kept in self.broker.store.queues[self._target])

    def _left(self):
        return Counter(body_of(kept.payload) for kept in self.broker.store.queues[self._source])


def _command(frame):
    return command_of(frame) if isinstance(frame.body, Transfer) else None


def _commits(frame):
    command = _command(frame)
    return isinstance(command, Discharge) and not command.fail


def _answers(answer, frame):
    """A broker is the receiver of what it answers."""
    body = answer.body
    if not isinstance(body, Disposition) or body.role != RECEIVER or answer.channel != frame.channel:
        return False
    return isinstance(body.state, Accepted) and body.first <= frame.body.delivery_id <= (body.last or body.first)


def points(product, job, *, silent=False):
    """Every place where the connection of a job can be cut, or where the broker can fall silent."""
    counts = Run(product, job).play().peer.lines[0].counts
    for direction, moments in (_SILENT if silent else _MOMENTS).items():
        yield from (Cut(direction, *place) for place in itertools.product(range(counts[direction]), moments))


def main():
    """Visit all points; 1 if one was not reached that every run has."""
    total, unvisited = 0, []
    for (product, job), silent in [*((cell, False) for cell in CELLS), *((cell, True) for cell in SILENT_CELLS)]:
        runs = _visit(product, job, silent=silent)
        total, unvisited = total + len(runs), unvisited + [run for run in runs if not run.sprung]
    print(f"visited {total - len(unvisited)}/{total}: no run may be shorter than the first one was")
    missed = [run for run in unvisited if run.must_spring]
    for run in missed:
        print(f"not reached, though every run has it: {run.product} {run.job} {run.cut}")
    return 1 if missed else 0


def _visit(product, job, *, silent):
    runs = [Run(product, job, cut).play() for cut in points(product, job, silent=silent)]
    sprung = sum(run.sprung for run in runs)
    print(f"{product:<26} {job:<8} {sprung}/{len(runs)} {'silences' if silent else 'cuts'}")
    return runs


if __name__ == "__main__":
    sys.exit(main())
