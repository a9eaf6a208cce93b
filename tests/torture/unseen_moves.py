"""Ends listeners of real brokers by a killer among 20 innocent messages: none of these is moved or deleted unseen.

``PYTHONPATH=tests/support python -m tests.torture.unseen_moves qpid-amqp rabbitmq4-amqp``

The matrix is that of tests/support/killer.py for each pair of broker and protocol. The killer is moved or deleted
within the bound of docs/reference/redelivery.md.
"""

import argparse
import sys
import tempfile

from jmsjca.testing.contract.network import FaultProxy
from tests.support.killer import LADDERS, cells, run

COUNTING = ("qpid-amqp", "rabbitmq4-amqp")
"""Pairs whose broker counts each delivery of a lost connection."""

PAIRS = (
    *COUNTING,
    "artemis-amqp",
    "artemis-stomp",
    "activemq-amqp",
    "activemq-stomp",
    "rabbitmq-amqp",
    "rabbitmq-stomp",
    "rabbitmq4-stomp",
    "openmq-stomp",
)

UNPROVEN = 1  # calls beyond those of the ladder, because the first delivery may have been prefetched
POOL = 4
ENOUGH = 2  # listeners for a killer that is never moved


def bound(pair, cell):
    """Return the most calls of the handler with the killer; None without a bound."""
    if cell.end == "cut":  # the same process remembers its calls
        return LADDERS[cell.ladder]
    return LADDERS[cell.ladder] + UNPROVEN if pair in COUNTING else None


def verdict(pair, url, cell, folder):
    """Run a cell; return what is wrong, and the calls of the handler with the killer."""
    most = bound(pair, cell)
    listeners = ENOUGH if most is None else most + 1
    if cell.end != "cut":
        return _judge(run(url, cell, folder, listeners=listeners, pool=POOL), most)
    wire = FaultProxy(url)
    try:
        return _judge(run(wire.url, cell, folder, cut=wire.cut, listeners=listeners, pool=POOL), most)
    finally:
        wire.close()


def _judge(account, most):
    wrong = [f"no handler had {account.unseen}"] if account.unseen else []
    if account.condemned:
        wrong.append(f"moved or deleted too early: {account.condemned}")
    if account.gone and account.calls < LADDERS[account.cell.ladder]:
        wrong.append("the killer was moved or deleted too early")
    if most is not None and not account.gone:
        wrong.append("the killer was neither moved nor deleted")
    if most is not None and account.calls > most and account.cell.end != "stop":  # which lets it fail again meanwhile
        wrong.append(f"more than {most} calls")
    told = f"{account.calls} calls with the killer, which is {'gone' if account.gone else 'there'}"
    return "; ".join(wrong), told


def main():
    """Run all cells of the given pairs."""
    from brokers.registry import url_of  # in tests/support

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pairs", nargs="*", default=PAIRS)
    parser.add_argument("--only", default="", help="parts of the name of a cell")
    options = parser.parse_args()
    found, visited = 0, 0
    for pair in options.pairs:
        for cell in cells():
            if all(part in str(cell) for part in options.only.split()):
                with tempfile.TemporaryDirectory() as folder:
                    wrong, told = verdict(pair, url_of(pair), cell, folder)
                visited, found = visited + 1, found + bool(wrong)
                print(f"{'BAD ' if wrong else 'good'} {pair} {cell}: {wrong or told}", flush=True)
    print(f"visited {visited} of {len(PAIRS) * len(cells())} cells, {found} bad")
    return found > 0


if __name__ == "__main__":
    sys.exit(main())
