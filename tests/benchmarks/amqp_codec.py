"""What it costs to encode and to decode an AMQP message, ours beside proton's `Message`: processor time, in one run.

``python -m tests.benchmarks.amqp_codec --rounds 11 --json figures.json``

Two messages, each with a body of 1 KiB: "bytes" has an id, a destination and a time; "text" has reply-to, correlation
id, type, priority and four properties as well. Both sides read and write the very same bytes. What is measured:

- body: decode, and read the body. Proton decodes all of a message at once; ours the rest when it is asked for.
- id: decode, and read the body and the id, as every listener does.
- all: decode, and read the body, every header and every property with its type.
- encode: encode a message that was made before.
- make: make a message, set its headers, and encode it.

No broker, no network. The contenders take turns within every round; a ratio is the median of the quotients in the same
round, and below 1 where ours needs less.
"""

import argparse
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import proton
from proton import byte, int32, symbol

from jmsjca import BytesMessage, Queue, TextMessage
from jmsjca.messages import Int
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.codec.decoder import decode
from jmsjca.providers.amqp.codec.encoder import encode, template_for
from tests.benchmarks.measurements import Measurements, alternating, write

QUEUE = Queue("orders")
ORIGIN = ReceiveContext(QUEUE)
CAST = template_for(QUEUE, "capability")
NOW = 1_700_000_000.0
SENT = datetime.fromtimestamp(NOW, UTC)
BYTES, TEXT = b"x" * 1024, "x" * 1024
BASE = "proton"
GOALS = {"all": 0.70}  # of proton, by case
KINDS = {"msg-type": 5, "dest": 0, "reply-to": 0}  # a text for a queue, its answer for another


def our_bytes() -> Any:
    message = BytesMessage(BYTES)
    message.message_id, message.timestamp = "ID:host-12345-6789", SENT
    return message


def our_text() -> Any:
    properties = {"region": "EU", "number": Int(7), "price": 1.5, "paid": True}
    message = TextMessage(TEXT, properties=properties, correlation_id="c-1", reply_to=Queue("answers"), type="order")
    message.message_id, message.timestamp, message.priority = "ID:host-12345-6789", SENT, 5
    return message


def proton_bytes() -> Any:
    return proton.Message(
        body=BYTES,
        inferred=True,
        durable=True,
        id="ID:host-12345-6789",
        address=QUEUE.name,
        creation_time=NOW,
        content_type=symbol("application/octet-stream"),
        annotations={symbol("x-opt-jms-msg-type"): byte(3), symbol("x-opt-jms-dest"): byte(0)},
    )


def proton_text() -> Any:
    return proton.Message(
        body=TEXT,
        durable=True,
        priority=5,
        id="ID:host-12345-6789",
        address=QUEUE.name,
        subject="order",
        reply_to="answers",
        correlation_id="c-1",
        creation_time=NOW,
        annotations={symbol(f"x-opt-jms-{name}"): byte(n) for name, n in KINDS.items()},
        properties={"region": "EU", "number": int32(7), "price": 1.5, "paid": True},
    )


def encoded(message: Any) -> bytes:
    """As a unit does it."""
    return CAST(message) or encode(message, QUEUE, NOW)


def our_headers(message: Any) -> None:
    _ = (message.message_id, message.destination, message.type, message.reply_to, message.correlation_id)
    _ = (message.delivery_mode, message.priority, message.expiration, message.timestamp, message.delivery_time)
    dict(message.properties)


def proton_headers(message: Any) -> None:
    _ = (message.id, message.address, message.subject, message.reply_to, message.correlation_id)
    _ = (message.durable, message.priority, message.expiry_time, message.creation_time, message.annotations)
    dict(message.properties or {})


def of_proton(raw: bytes) -> tuple[Any, Any]:
    """Decode, and own the body: proton shows bytes as a view of memory that it will use again."""
    message: Any = proton.Message()
    message.decode(raw)
    body = message.body
    return message, bytes(body) if isinstance(body, memoryview) else body


def cases(ours: Callable[[], Any], protons: Callable[[], Any]) -> dict[str, dict[str, Callable[[], object]]]:
    """What each contender does in each case."""
    raw, made, protons_made = encode(ours(), QUEUE, NOW), ours(), protons()
    assert decode(bytes(protons_made.encode()), ORIGIN).body == decode(raw, ORIGIN).body == of_proton(raw)[1]

    def ours_all() -> None:
        message = decode(raw, ORIGIN)
        _ = message.body
        our_headers(message)

    return {
        "body": {BASE: lambda: of_proton(raw), "jmsjca": lambda: decode(raw, ORIGIN).body},
        "id": {BASE: lambda: of_proton(raw)[0].id, "jmsjca": lambda: decode(raw, ORIGIN).message_id},
        "all": {BASE: lambda: proton_headers(of_proton(raw)[0]), "jmsjca": ours_all},
        "encode": {BASE: protons_made.encode, "jmsjca": lambda: encoded(made)},
        "make": {BASE: lambda: protons().encode(), "jmsjca": lambda: encoded(ours())},
    }


def measure(rounds: int, count: int) -> Measurements[tuple[str, str]]:
    """Let the contenders take turns; the first round warms up."""
    found: Measurements[tuple[str, str]] = Measurements()
    messages = {"bytes": cases(our_bytes, proton_bytes), "text": cases(our_text, proton_text)}
    for order in alternating([BASE, "jmsjca"], rounds + 1):
        for message, kinds in messages.items():
            for case, contenders in kinds.items():
                for name in order:
                    found.note((message, case), name, _microseconds(contenders[name], count))
    found.forget_first_round()
    return found


def _microseconds(action: Callable[[], object], count: int) -> float:
    began = time.process_time()
    for _ in range(count):
        action()
    return (time.process_time() - began) / count * 1_000_000


def main() -> int:
    """Measure, print a table, write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--count", type=int, default=2000, help="messages per turn")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    figures = [
        {"message": message, "case": case, "contender": name, "microseconds": round(us, 2), "ratio": round(ratio, 2)}
        for (message, case), name, (us, ratio, _) in measure(options.rounds, options.count).summaries(BASE)
    ]
    print(f"{'message':9}{'case':9}{'contender':11}{'us/message':>11}{'of proton':>11}")
    for message, case, name, microseconds, ratio in (figure.values() for figure in figures):
        goal = f"  goal <= {GOALS[case]:.2f}" if case in GOALS and name != BASE else ""
        print(f"{message:9}{case:9}{name:11}{microseconds:>11.2f}{ratio:>11.2f}{goal}")
    write(options.json, {"rounds": options.rounds, "count": options.count}, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
