"""What a spec may ask for and an activation refuses in this release."""

import pytest

from jmsjca import Message, Outcome
from jmsjca.errors import NotSupportedError
from tests.unit.inbound import Inbox, send


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"transaction": "required"}, "transaction='required' .container-managed transactions will bring it"),
        ({"transaction": "bean"}, "transaction='bean' .container-managed transactions will bring it"),
    ],
)
def test_refused(jms_adapter, fields, told):
    with pytest.raises(NotSupportedError, match=f"queue:q: .*{told}.* not available in this release"):
        jms_adapter.listener("q", **fields)(Inbox())
    assert jms_adapter.activations == ()


def test_a_destination_that_is_looked_up_is_refused(jms_adapter):
    with pytest.raises(NotSupportedError, match="a destination that is looked up is not available"):
        jms_adapter.listener("lookup://jms/orders")(Inbox())


@pytest.mark.parametrize(
    ("destination", "handling"),
    [("q", "3:move(queue:lookup://jms/dead)"), ("lookup://jms/orders", "3:move(same:dlq$)")],
)
def test_moving_to_what_is_looked_up_is_refused(jms_adapter, destination, handling):
    with pytest.raises(NotSupportedError, match="moving messages to a destination that is looked up is not available"):
        jms_adapter.listener(destination, redelivery_handling=handling)(Inbox())


def test_a_handler_cannot_ask_for_that_either(adapter, recorder):
    refused = []

    def handler(message: Message):
        with pytest.raises(NotSupportedError, match="moving messages to a destination that is looked up") as told:
            message.redelivery_handling = "1:move(queue:lookup://jms/dead)"
        refused.append((told.value, message.redelivery_handling))

    adapter.listener("q", redelivery_handling="3:5")(handler)
    send(adapter, "a")
    with adapter:
        recorder.await_outcome(Outcome.COMMITTED)
    assert [handling for _, handling in refused] == ["3:5"]


def test_what_changes_nothing_in_mode_serial_is_taken(jms_adapter):
    jms_adapter.listener("q", endpoint_pool_max_size=3, max_outstanding=7, batch_size=1)(Inbox())
    assert len(jms_adapter.activations) == 1
