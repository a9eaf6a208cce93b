"""How fast jmsjca sends and receives over STOMP, beside other clients and a bare socket on one ActiveMQ, in one run.

``PYTHONPATH=tests/support python -m tests.benchmarks.stomp stomp://127.0.0.1:61613 --rounds 5 --json figures.json``

All send and receive durable messages of 1 KiB to and from queues of their own, 200 ahead, and look at every body.
They take turns within every round; a ratio is the median of the quotients with stomp.py in the same round. Processor
time is that of this process.

stomp.py receives with automatic acknowledgement ("individual": one ACK for each message), as the bare socket and
stompman do: what the broker has sent counts as handled, so a crash loses it. "session", "unit" and "listener" are
ours, in transactions of 100 or, where it says auto, without: then each message is acknowledged by itself, and that
confirmed. All send in transactions of 100.
"""

import sys
from collections.abc import Mapping

from jmsjca import AcknowledgeMode
from tests.benchmarks import stomp_loops as others
from tests.benchmarks.field import ours
from tests.benchmarks.field.rounds import Case, Rounds, options_of, report
from tests.benchmarks.field.turns import BATCH, Contender

REFERENCE = "stomp.py"
CASES: dict[Case, Mapping[str, Contender]] = {
    Case("receive", "each its own way"): {
        REFERENCE: others.stomp_py_receives("auto"),
        "stomp.py, individual": others.stomp_py_receives("client-individual"),
        "stompman, auto": others.stompman_receives,
        "bare socket, auto": others.raw_receives,
        "session, auto": ours.session_receives(AcknowledgeMode.AUTO),
        "session, dups ok": ours.session_receives(AcknowledgeMode.DUPS_OK),
        "session": ours.session_receives(BATCH),
        "unit": ours.unit_receives,
        "listener, cc": ours.listens(concurrency_mode="cc", batch_size=BATCH),
    },
    Case("send", "transactions of 100"): {
        REFERENCE: others.stomp_py_sends,
        "stompman": others.stompman_sends,
        "bare socket": others.raw_sends,
        "session": ours.session_sends(BATCH),
        "unit": ours.unit_sends(atomic=True),
    },
}


def main() -> int:
    """Measure and report."""
    options = options_of(__doc__)
    rounds = Rounds(options.url, options.count, 2 * BATCH)
    for case, contenders in CASES.items():
        rounds.measure(case, contenders, options.rounds)
    report(rounds, REFERENCE, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
