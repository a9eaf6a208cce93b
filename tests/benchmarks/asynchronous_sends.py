"""How fast one thread sends single messages: each confirmed before the next, or asynchronously; beside Qpid JMS.

``PYTHONPATH=tests/support python -m tests.benchmarks.asynchronous_sends amqp://127.0.0.1:5672 --rounds 5``

Both clients send durable messages of 1 KiB with a session that is not transacted. "confirmed each" waits for the broker
at every send; "asynchronous" calls a completion listener for each message, and ends with the last call. The clients
take turns within every round, as in `tests.benchmarks.field`.
"""

import sys
import uuid
from contextlib import closing

from jmsjca import AcknowledgeMode
from tests.benchmarks.field import ours
from tests.benchmarks.field.cases import REFERENCE
from tests.benchmarks.field.programs import Program, java_command
from tests.benchmarks.field.rounds import Case, Rounds, options_of, report
from tests.benchmarks.field.turns import Turn


def main() -> int:
    """Measure and report."""
    options = options_of(__doc__)
    rounds = Rounds(options.url, options.count)
    with closing(Program(java_command)) as java:
        java.does("stream", 0)(Turn(options.url, f"bench.{uuid.uuid4().hex}", options.count))  # warms up
        cases = {
            Case("send", "confirmed each", waits=True): {
                REFERENCE: java.does("send", 0),
                "session": ours.session_sends(AcknowledgeMode.AUTO),
            },
            Case("send", "asynchronous"): {
                REFERENCE: java.does("stream", 0),
                "session": ours.session_sends_asynchronously,
            },
        }
        for case, contenders in cases.items():
            rounds.measure(case, contenders, options.rounds)
    report(rounds, REFERENCE, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
