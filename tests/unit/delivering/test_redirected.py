"""Messages that are moved as they are (option JMSJCA.redeliveryredirect)."""

import queue

from jmsjca import ActivationSpec, Queue, TextMessage
from tests.unit.inbound import PATIENCE


def test_a_redirected_message_tells_nothing_of_where_it_was(adapter):
    moved = queue.Queue()

    def fail(message):
        raise KeyError(message.body)

    options = {"JMSJCA.redeliveryredirect": "true"}
    adapter.activate(ActivationSpec(destination="q", redelivery_handling="1:move(queue:dlq)", options=options), fail)
    adapter.activate(ActivationSpec(destination="dlq"), moved.put)
    with (
        adapter,
        adapter.connection_factory().create_connection() as connection,
        connection.create_session() as session,
    ):
        session.create_producer(Queue("q")).send(TextMessage("a", properties={"region": "EU"}))
        message = moved.get(timeout=PATIENCE)
    assert (message.body, message.properties["region"]) == ("a", "EU")
    assert [name for name in message.properties if name != "region" and "JMSX" not in name] == []
