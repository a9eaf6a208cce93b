"""Fifty threads of a web application send with one adapter."""

from jmsjca import Queue, ResourceAdapter
from tests.unit.outbound.queues import PATIENCE
from tests.unit.outbound.web_application import post_from_threads, serving


def test_each_request_of_fifty_threads_is_in_the_queue_once(jms_broker_url):
    with ResourceAdapter(jms_broker_url) as adapter, serving(adapter, "orders") as port:
        ids = post_from_threads(port, threads=50, requests=300)
        with adapter.connection_factory().create_connection() as connection:
            consumer = connection.create_session().create_consumer(Queue("orders"))
            received = [consumer.receive(PATIENCE) for _ in range(300)]
            assert consumer.receive_no_wait() is None
        stats = adapter.sender._pool.get_stats()
    assert {message.body: message.message_id for message in received} == ids
    assert len(ids) == 300
    assert stats["connections_num"] <= 8
    assert stats["pool_size"] == stats["pool_available"]
