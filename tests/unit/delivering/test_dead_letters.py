"""A listener on a dead-letter queue reads why a message came there, by the names of the listener that failed."""

import queue

from jmsjca import Message
from tests.unit.inbound import PATIENCE, send


def test_it_reads_what_the_moved_copy_tells(adapter):
    read: queue.Queue[tuple[object, ...]] = queue.Queue()

    @adapter.listener("q", redelivery_handling="1:move(queue:dead)")
    def failing(message: Message) -> None:
        message.user_rollback_data["step"] = "parsing"
        raise KeyError("tea")

    @adapter.listener("dead")
    def reading(message: Message) -> None:
        names = ("ExceptionClass", "ExceptionMessage", "UserRollbackData.step")
        read.put(tuple(message.get_string_property(f"JMS_Sun_JMSJCA_{name}") for name in names))
        read.put((dict(message.user_rollback_data), message.redelivery_count))

    with adapter:
        send(adapter, "a")
        assert read.get(timeout=PATIENCE) == ("KeyError", "'tea'", "parsing")
        assert read.get(timeout=PATIENCE) == ({}, 0)
