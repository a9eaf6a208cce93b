"""How long a message can ask to be kept waiting for its acknowledgement: by the property JBXAcknowledgmentTimeout."""

import pytest

from jmsjca import Outcome, Queue, TextMessage
from jmsjca.inbound.hold_until_ack import requested_timeout
from jmsjca.messages import Double, Long
from tests.unit.delivering.stage import Performance, endpoint_of, terms
from tests.unit.inbound import PATIENCE

A_DAY = 86_400.0


def asking(value):
    return TextMessage("a", properties={} if value is None else {"JBXAcknowledgmentTimeout": value})


def put(link, *values):
    unit = link.unit()
    for place, value in enumerate(values):
        message = asking(value)
        message.message_id = f"ID:{place}"
        unit.send(message, Queue("q"))
    unit.commit()


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        (30, 30.0),
        (Double(0.5), 0.5),
        ("30", 30.0),  # as it comes over STOMP from whoever sent a number
        ("0.5", 0.5),
        (Long(2**62), A_DAY),
        ("inf", A_DAY),
        (Double(float("inf")), A_DAY),
    ],
)
def test_so_many_seconds_but_a_day_at_most(connected, asked, seconds):
    link = connected()
    put(link, asked)
    [delivery] = link.consumer(Queue("q")).receive(1, PATIENCE)
    assert requested_timeout(delivery.message, A_DAY) == seconds


@pytest.mark.parametrize("asked", [None, 0, -1, True, "", "soon", "nan", "-1", Double(float("nan"))])
def test_anything_else_asks_for_nothing(connected, asked):
    link = connected()
    put(link, asked)
    [delivery] = link.consumer(Queue("q")).receive(1, PATIENCE)
    assert requested_timeout(delivery.message, A_DAY) is None


@pytest.mark.parametrize("asked", [(0.05, 500.0), (500.0, 0.05), (500.0, None)])
def test_the_shortest_time_counts_for_a_batch(connected, recorder, asked):
    link = connected()
    put(link, *asked)
    limit = 0.05 if None in asked else 500.0
    held = terms("sync", hold_until_ack=True, batch_size=2, pool_size=1, acknowledgement_timeout=limit)
    performance = Performance(endpoint_of(lambda message: None, held, recorder), link)
    assert recorder.outcomes.get(timeout=PATIENCE) == (Outcome.ROLLED_BACK, 2)
    performance.stop()
