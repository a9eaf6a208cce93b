"""The account, in a process of its own: ``python -m jmsjca.management.demo.account FILE`` prints it as JSON.

It knows nothing of what the run believes: it compares the ids noted before each send with the ids that are found in
Parquet, in the topic and in the dead-letter queue.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from jmsjca.management.demo.parquet import read_parquet
from jmsjca.management.demo.sending import POISON_MARK
from jmsjca.management.demo.settings import AUDIT, CLIENT_ID, DEAD_LETTERS, RESULTS, DemoSettings
from jmsjca.messages import Message
from jmsjca.outbound import ConnectionFactory, Session

__all__ = ["balance", "take_account"]


def take_account(settings: DemoSettings) -> dict[str, Any]:
    """Count what was sent and what became of it."""
    lines = settings.journal.read_text().splitlines()
    sent = {line.removesuffix(POISON_MARK) for line in lines}
    poison = {line.removesuffix(POISON_MARK) for line in lines if line.endswith(POISON_MARK)}
    with ConnectionFactory(settings.url, client_id=CLIENT_ID).create_connection() as connection:
        session = connection.create_session(transacted=True)
        published = Counter(id_ for message in _audited(session) for id_ in json.loads(message.body)["ids"])
        dead = Counter(str(m.properties["event_id"]) for m in session.create_browser(DEAD_LETTERS))
        session.close()  # rolls back: an account can be taken twice
    return balance(sent, poison, _stored(settings), published, dead)


def balance(
    sent: set[str], poison: set[str], stored: Counter[str], published: Counter[str], dead: Counter[str]
) -> dict[str, Any]:
    """Compare what was sent with what was found.

    Args:
        sent: All ids.
        poison: Those whose bodies were spoiled.
        stored: How often each id is in Parquet.
        published: How often each id is in the results of the topic.
        dead: How often each id is in the dead-letter queue.
    """
    processed = stored.keys() & published.keys()
    lost = sent - processed - dead.keys()
    twice = {i for found in (stored, published, dead) for i, n in found.items() if n > 1}
    twice |= dead.keys() & (stored.keys() | published.keys())
    unexpected = (stored.keys() | published.keys() | dead.keys()) - sent
    account = {
        "sent": len(sent),
        "processed": len(processed),
        "dead_lettered": len(dead),
        "lost": len(lost),
        "duplicated": len(twice),
        "unexpected": len(unexpected),
        "wrongly_dead_lettered": len(dead.keys() ^ poison),
    }
    whole = len(processed) + len(dead) == len(sent)
    wrong = sum(account[k] for k in ("lost", "duplicated", "unexpected", "wrongly_dead_lettered"))
    return account | {"balanced": whole and wrong == 0}


def _stored(settings: DemoSettings) -> Counter[str]:
    if not settings.events.exists():
        return Counter()
    return Counter(read_parquet(settings.events, ["id"]).column("id").to_pylist())


def _audited(session: Session) -> Iterator[Message]:
    consumer = session.create_durable_consumer(RESULTS, AUDIT)
    while (message := consumer.receive(timeout=0)) is not None:
        yield message


if __name__ == "__main__":
    json.dump(take_account(DemoSettings.load(sys.argv[1])), sys.stdout)
