"""Who is timed in which case."""

from collections.abc import Mapping
from importlib import import_module

from jmsjca import AcknowledgeMode
from tests.benchmarks.field import ours, protons
from tests.benchmarks.field.programs import Program
from tests.benchmarks.field.rounds import Case
from tests.benchmarks.field.turns import BATCH, Contender, Turn

__all__ = ["REFERENCE", "cases"]

REFERENCE = "Qpid JMS"


def cases(java: Program, cpp: Program) -> dict[Case, Mapping[str, Contender]]:
    """Every case has ours and Qpid JMS, the reference; the others where they can do such a thing."""
    return {
        Case("receive", "acknowledged each"): {
            REFERENCE: java.does("receive", 0),
            "Spring's container": java.does("listen", 0),
            "proton C++": cpp.does("receive"),
            "proton handler": protons.handler_receives,
            "proton blocking": protons.blocking_receives,
            "rabbitmq client": _rabbitmq("receives"),
            "session, auto": ours.session_receives(AcknowledgeMode.AUTO),
            "session, dups ok": ours.session_receives(AcknowledgeMode.DUPS_OK),
            "listener, dups ok": ours.listens(transaction="none", acknowledge_mode=AcknowledgeMode.DUPS_OK),
        },
        Case("receive", "a transaction each", waits=True): {
            REFERENCE: java.does("receive", 1),
            "Spring's container": java.does("listen", 1),
            "session": ours.session_receives(1),
            "listener, serial": ours.listens(concurrency_mode="serial"),
            "listener, cc": ours.listens(concurrency_mode="cc"),
        },
        Case("receive", "transactions of 100"): {
            REFERENCE: java.does("receive", BATCH),
            "proton handler": protons.atomic_receives,
            "session": ours.session_receives(BATCH),
            "unit": ours.unit_receives,
            "listener, cc": ours.listens(concurrency_mode="cc", batch_size=BATCH),
        },
        Case("send", "confirmed each", waits=True): {
            REFERENCE: java.does("send", 0),
            "proton blocking": protons.blocking_sends,
            "rabbitmq client": _rabbitmq("sends"),
            "session, auto": ours.session_sends(AcknowledgeMode.AUTO),
        },
        Case("send", "confirmed in the end"): {
            REFERENCE: java.does("stream", 0),
            "proton C++": cpp.does("send"),
            "proton handler": protons.handler_sends,
            "units of 100": ours.unit_sends(atomic=False),
            "one unit": ours.unit_sends(atomic=False, together=None),
        },
        Case("send", "a transaction each", waits=True): {
            REFERENCE: java.does("send", 1),
            "session": ours.session_sends(1),
        },
        Case("send", "transactions of 100"): {
            REFERENCE: java.does("send", BATCH),
            "proton handler": protons.atomic_sends,
            "session": ours.session_sends(BATCH),
            "unit": ours.unit_sends(atomic=True),
        },
    }


def _rabbitmq(loop: str) -> Contender:
    """A loop of a package that may be missing: imported in its turn, so that this is told in the table."""

    def take_turn(turn: Turn) -> Mapping[str, float]:
        client = import_module("tests.benchmarks.field.rabbitmq")
        return getattr(client, loop)(turn)  # type: ignore[no-any-return]

    return take_turn
