"""Flights for a connector: messages with poison and with carriers that nobody subscribes to, and their routes.

``python -m tests.spark.flights_connector URL JOURNAL KILL_AT`` polls them in a process of its own, which kills itself
while the collaboration has the event with this number, counted from the start of the process; 0 never does.
"""

import json
import os
import random
import signal
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from jmsjca import ConnectionFactory, Message, Queue, Short, TextMessage
from jmsjca.connector import BusinessObject, Connector, ConnectorConfig, DeliveryOutcome, ReturnCode
from jmsjca.demo.events import read_events

CARRIERS = ("AA", "AS", "CO", "DL", "HP", "UA", "WN")
SUBSCRIBED = ("AA", "CO", "DL", "UA", "WN")
POISON, SEED, CHUNK = 0.01, 2001, 500
SAMPLE = None if os.environ.get("JMSJCA_ALL_STEPS") else 4000
ROUTES: dict[str, Any] = {
    "archive_destination": "archive",
    "error_destination": "errors",
    "unsubscribed_destination": "unsubscribed",
}
ATTRIBUTES = {
    "number": {"type": "integer", "key": True},
    "date": {},
    "delay": {"type": "integer", "required": True},
    "distance": {"type": "integer"},
    "origin": {},
    "destination": {},
    "carrier": {},
}
# Each copy has ids and times of its own, the trace of the process that failed, and counts of the deliveries, which the
# kill repeats; a sink adds the duplicate id.
VOLATILE = ("OriginalJMSMessageID", "OriginalTimestamp", "StackTrace", "DUPL_ID", "RedeliveryCount", "DeliveryCount")


def config(url: str) -> ConnectorConfig:
    """The definition that both the connector and the pipeline use."""
    definitions = {"Flight": {"attributes": ATTRIBUTES}}
    return ConnectorConfig(
        connection_url=url, input_destination=["flights"], definitions=definitions, poll_quantity=500, **ROUTES
    )


def subscription() -> Callable[[BusinessObject], DeliveryOutcome | None]:
    """The collaboration of both. Spark's workers get it by value, because they cannot import the tests."""
    subscribed = SUBSCRIBED
    return lambda flight: None if flight.get("carrier") in subscribed else DeliveryOutcome.NO_SUBSCRIPTION_FOUND


def messages(file: Path) -> Iterator[Message]:
    """A message for each flight; a share of the bodies is spoiled. A sample without ``JMSJCA_ALL_STEPS=1``."""
    chance = random.Random(SEED)
    for number, flight in enumerate(islice(read_events(file), SAMPLE), 1):
        carrier = CARRIERS[zlib.crc32(f"{flight['origin']}{flight['destination']}".encode()) % len(CARRIERS)]
        body = json.dumps({"_type": "Flight", "number": number, **flight, "carrier": carrier})
        text = spoiled(body, chance.randrange(3)) if chance.random() < POISON else body
        properties = {"carrier": carrier, "delay": Short(flight["delay"]), "number": number}
        yield TextMessage(text, properties=properties, correlation_id=f"flight-{number}", type="flight")


def spoiled(body: str, kind: int) -> str:
    """Return the body cut, wrapped in XML, or with a text where a number belongs."""
    return (body[: len(body) // 2], f"<flight>{body}</flight>", body.replace('"delay": ', '"delay": "late", "was": '))[
        kind
    ]


def send(url: str, file: Path) -> int:
    """Send all flights; returns their number."""
    waiting, sent = messages(file), 0
    with ConnectionFactory(url).create_connection() as connection:
        session = connection.create_session(transacted=True)
        producer = session.create_producer(Queue("flights"))
        while chunk := list(islice(waiting, CHUNK)):
            for number, message in enumerate(chunk):
                producer.send(message, priority=(sent + number) % 10)
            session.commit()
            sent += len(chunk)
    return sent


def routed(url: str) -> dict[str, Counter[Any]]:
    """What is in each destination for copies, and what is left in the input destination."""
    with ConnectionFactory(url).create_connection() as connection:
        session = connection.create_session()
        return {
            name: Counter(map(content, session.create_browser(Queue(name)))) for name in (*ROUTES.values(), "flights")
        }


def content(message: Message) -> tuple[object, ...]:
    """Everything of a copy that does not depend on when and by which process it was made."""
    properties = tuple(
        sorted(
            (name, message.get_string_property(name))
            for name in message.properties
            if not name.endswith(VOLATILE) and not name.startswith("JMSX")
        )
    )
    return (message.body, message.type, message.correlation_id, message.reply_to, message.priority, properties)


def main(url: str, journal: str, kill_at: int) -> None:
    """Poll all flights, and write down each one that was delivered."""
    decide, taken = subscription(), 0
    with Path(journal).open("a") as file:

        def collaboration(flight: BusinessObject) -> DeliveryOutcome | None:
            nonlocal taken
            taken += 1
            outcome = decide(flight)
            if outcome is None:
                file.write(json.dumps([flight.object_event_id, flight.verb, flight.attributes]) + "\n")
                file.flush()
            if taken == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return outcome

        with Connector(config(url), collaboration) as connector:
            before = -1
            while taken != before:
                before = taken
                assert connector.poll_for_events() is ReturnCode.SUCCEED


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
