"""How fast clients of AMQP send and receive over one broker, in one run: ours, Java's, proton's in C++ and in Python.

``PYTHONPATH=tests/support python -m tests.benchmarks.field amqp://127.0.0.1:5672 --rounds 5 --json figures.json``

All send and receive durable messages of 1 KiB to and from queues of their own, take 100 ahead, and look at every
body. They take turns within every round, so that what else the machine does hits all of them alike; a ratio is the
median of the quotients with Qpid JMS in the same round. Processor time is that of the client's process. Java's
process lives through all rounds and warms up before the first, which counts for nobody. What cannot run is left out,
and why is said.

- Qpid JMS: a session of Java's, one thread. It does not wait until the broker has noted an acknowledgement;
  "confirmed in the end" it sends with a `CompletionListener`.
- Spring's container: `DefaultMessageListenerContainer` with one consumer, which it keeps, on Qpid JMS.
- proton C++, proton handler: their `messaging_handler`. That of C++ has no transactions; in Python they are those of
  `TransactionHandler`. proton blocking: `BlockingConnection`.
- rabbitmq client: rabbitmq-amqp-python-client, without its check that the broker is RabbitMQ 4.
- session, listener: our public API. "auto" and "dups ok" wait for the broker as little as Qpid JMS; the session's "dups
  ok" acknowledges in chunks. unit: the interface of our provider, below it.
"""

import sys
import uuid
from contextlib import closing

from tests.benchmarks.field.cases import REFERENCE, cases
from tests.benchmarks.field.programs import Program, cpp_command, java_command
from tests.benchmarks.field.rounds import Rounds, options_of, report
from tests.benchmarks.field.turns import BATCH, Turn


def warm_up(java: Program, turn: Turn) -> None:
    """Let Java's compiler see its loops."""
    for loop in ("receive", "listen"):
        java.does("send", BATCH)(turn)
        java.does(loop, BATCH)(turn)


def main() -> int:
    """Measure and report."""
    options = options_of(__doc__)
    rounds = Rounds(options.url, options.count)
    with closing(Program(java_command)) as java, closing(Program(cpp_command)) as cpp:
        warm_up(java, Turn(options.url, f"bench.{uuid.uuid4().hex}", options.count))
        for case, contenders in cases(java, cpp).items():
            rounds.measure(case, contenders, options.rounds)
    report(rounds, REFERENCE, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
