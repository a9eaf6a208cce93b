"""What is remembered of held messages once they are settled."""

import pytest

from jmsjca import Outcome, TextMessage
from jmsjca.errors import IllegalStateError
from jmsjca.inbound.acknowledgement_registry import AcknowledgementRegistry
from jmsjca.inbound.hold_until_ack import HeldDeliveryContext

REMEMBERED = 1000


def note(registry, message_id):
    message = TextMessage("a")
    message.message_id = message_id
    context = HeldDeliveryContext(message, None, None)
    registry.register(context)
    return context


def refusal(registry, message_id):
    with pytest.raises(IllegalStateError) as refused:
        registry.settle(message_id, "JBXCommit")
    return str(refused.value)


@pytest.mark.parametrize("unit", [1, 7, 100, 3000])
def test_the_last_thousand_are_known_and_the_first_are_not(unit):
    registry = AcknowledgementRegistry()
    ids = [f"ID:{number}" for number in range(6000)]
    for begin in range(0, len(ids), unit):
        registry.unregister([note(registry, message_id) for message_id in ids[begin : begin + unit]], Outcome.COMMITTED)
    assert all("already: committed" in refusal(registry, message_id) for message_id in ids[-REMEMBERED:])
    assert "No message" in refusal(registry, ids[0]) or unit > REMEMBERED


def test_what_counts_is_how_it_ended_last():
    registry = AcknowledgementRegistry()
    registry.unregister([note(registry, "ID:1")], Outcome.ROLLED_BACK)
    registry.unregister([note(registry, f"ID:a{number}") for number in range(REMEMBERED)], Outcome.COMMITTED)
    assert "already: rolled back" in refusal(registry, "ID:1")
    registry.unregister([note(registry, "ID:1")], Outcome.COMMITTED)
    assert "already: committed" in refusal(registry, "ID:1")


def test_a_later_delivery_stays_known_when_the_earlier_one_ends():
    registry = AcknowledgementRegistry()
    earlier, later = note(registry, "ID:1"), note(registry, "ID:1")
    registry.unregister([earlier], Outcome.ROLLED_BACK)
    later.acknowledged = True
    assert "acknowledged already" in refusal(registry, "ID:1")
