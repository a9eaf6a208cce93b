"""The account, in a process of its own: ``python -m jmsjca.management.demo.account FILE`` prints it as JSON.

It knows nothing of what the run believes: it compares the ids noted before each send with the ids that are found in
Parquet, in the topic and in the dead-letter queue.
"""

import json
import sys
from collections import Counter
from typing import Any

from jmsjca.management.demo.collecting import collect_dead_letters, collect_results, collect_unprocessed
from jmsjca.management.demo.findings import Findings
from jmsjca.management.demo.parquet import read_parquet
from jmsjca.management.demo.sending import POISON_MARK
from jmsjca.management.demo.settings import DemoSettings

__all__ = ["balance", "take_account"]


def take_account(settings: DemoSettings) -> dict[str, Any]:
    """Count what was sent and what became of it."""
    lines = settings.journal.read_text().splitlines()
    sent = {line.removesuffix(POISON_MARK) for line in lines}
    poison = {line.removesuffix(POISON_MARK) for line in lines if line.endswith(POISON_MARK)}
    published, dead = collect_results(settings, sent - poison), collect_dead_letters(settings, poison)
    missing = sent - published.events.keys() - dead.events.keys()
    waiting = collect_unprocessed(settings, missing) if missing else Findings()
    account = balance(
        sent,
        poison,
        stored=_stored(settings),
        published=published.events,
        dead=dead.events,
        waiting=waiting.events,
    )
    return account | {"repeated": published.repeated + dead.repeated}


def balance(
    sent: set[str],
    poison: set[str],
    *,
    stored: Counter[str],
    published: Counter[str],
    dead: Counter[str],
    waiting: Counter[str],
) -> dict[str, Any]:
    """Compare what was sent with what was found.

    Args:
        sent: All ids.
        poison: Those whose bodies were spoiled.
        stored: How often each id is in Parquet.
        published: How often each id is in the results of the topic.
        dead: How often each id is in the dead-letter queue.
        waiting: How often each id is still in the queue of the events.
    """
    processed = stored.keys() & published.keys()
    unprocessed = (waiting.keys() & sent) - processed - dead.keys()
    lost = sent - processed - dead.keys() - unprocessed
    twice = {i for found in (stored, published, dead) for i, n in found.items() if n > 1}
    twice |= dead.keys() & (stored.keys() | published.keys())
    unexpected = (stored.keys() | published.keys() | dead.keys() | waiting.keys()) - sent
    account = {
        "sent": len(sent),
        "processed": len(processed),
        "dead_lettered": len(dead),
        "unprocessed": len(unprocessed),
        "lost": len(lost),
        "duplicated": len(twice),
        "unexpected": len(unexpected),
        "wrongly_dead_lettered": len(dead.keys() ^ poison),
    }
    whole = len(processed) + len(dead) == len(sent)
    wrong = sum(account[k] for k in ("unprocessed", "lost", "duplicated", "unexpected", "wrongly_dead_lettered"))
    return account | {"balanced": whole and wrong == 0}


def _stored(settings: DemoSettings) -> Counter[str]:
    if not settings.events.exists():
        return Counter()
    return Counter(read_parquet(settings.events, ["id"]).column("id").to_pylist())


if __name__ == "__main__":
    json.dump(take_account(DemoSettings.load(sys.argv[1])), sys.stdout)
