"""What a message that comes again brings along, and what its handler can change for it alone."""

from __future__ import annotations

import pytest

from jmsjca import Message, Outcome, Session
from jmsjca.testing.inbound.hearing import Failed
from jmsjca.testing.inbound.stage import Inbound, Stage

__all__ = ["TestRedelivered"]

modes = pytest.mark.parametrize("mode", ["serial", "sync", "cc"])


@modes
class TestRedelivered(Inbound):
    """Messages that come again (JMSJCA manual, message wrapping and redelivery handling)."""

    def test_counts_and_data_are_found_again(self, stage: Stage, mode: str) -> None:
        """Under the names of the manual and as attributes; also what the handler raised before."""
        seen: list[tuple[object, ...]] = []

        def handler(message: Message) -> None:
            data = message.get_string_property("JMS_Sun_JMSJCA_UserRollbackData.tries")
            error = message.get_string_property("JMS_Sun_JMSJCA_ExceptionMessage")
            count = message.get_object_property("JMS_Sun_JMSJCA_RedeliveryCount")
            seen.append((message.redelivered, count, data, error))
            message.user_rollback_data["tries"] = f"{data or ''}x"
            if len(seen) < 4:
                raise Failed(f"try {len(seen)}")

        stage.send("a")
        stage.listen(handler, concurrency_mode=mode)
        stage.heard.await_outcome(Outcome.COMMITTED)
        assert seen == [
            (False, 0, None, None),
            (True, 1, "x", "try 1"),
            (True, 2, "xx", "try 2"),
            (True, 3, "xxx", "try 3"),
        ]

    def test_what_is_sent_on_is_found_again(self, stage: Stage, mode: str) -> None:
        """The received message gets another id, and its delivery is still that of the one that came."""
        stage.harness.require("atomic")

        def handler(message: Message, session: Session) -> None:
            session.create_producer(stage.never).send(message)
            message.user_rollback_data["seen"] = f"{message.user_rollback_data.get('seen', '')}x"
            raise Failed("no such order")

        stage.send("a")
        stage.listen(handler, concurrency_mode=mode, redelivery_handling=f"2:move(queue:{stage.out.name})")
        [delivery] = stage.harness.gather(stage.harness.connection.consumer(stage.out), 1)
        told = delivery.message.properties
        assert told["JMS_Sun_JMSJCA_UserRollbackData.seen"] == "xx"
        assert told["JMS_Sun_JMSJCA_ExceptionMessage"] == "no such order"

    def test_another_handling_is_for_one_message(self, stage: Stage, mode: str) -> None:
        """The others keep that of the listener; an index that is past already is in force the next time."""
        handling = f"3:move(queue:{stage.never.name})"

        def handler(message: Message) -> None:
            if message.body == "a":
                assert message.redelivery_handling in (handling, changed)
                message.redelivery_handling = changed
                raise Failed
            if message.redelivery_count < 2:
                raise Failed

        changed = f"1:move(queue:{stage.out.name})"
        stage.send(*"ab")
        stage.listen(handler, concurrency_mode=mode, redelivery_handling=handling)
        assert stage.arrive(stage.out, 1) == ["a"]
        stage.heard.await_outcome(Outcome.COMMITTED)
        stage.adapter.stop()
        for place in (stage.source, stage.out, stage.never):
            stage.expect_rest(place)

    def test_moved_without_telling_anything(self, stage: Stage, mode: str) -> None:
        """The option redeliveryredirect sends the message on as it is."""
        spec = {"redelivery_handling": f"1:move(queue:{stage.out.name})", "concurrency_mode": mode}
        stage.send("a", correlation_id="corr", type="letter")
        stage.listen(Message.set_rollback_only, options={"JMSJCA.redeliveryredirect": "true"}, **spec)
        [delivery] = stage.harness.gather(stage.harness.connection.consumer(stage.out), 1)
        message = delivery.message
        assert (message.body, message.correlation_id, message.type) == ("a", "corr", "letter")
        assert not [name for name in message.properties if name.startswith("JMS_Sun_JMSJCA_")]

    def test_moved_with_what_the_headers_say(self, stage: Stage, mode: str) -> None:
        """Correlation id, reply-to, type, priority and delivery mode are those of the message."""
        spec = {"redelivery_handling": f"1:move(queue:{stage.out.name})", "concurrency_mode": mode}
        headers = {"correlation_id": "corr", "type": "letter", "reply_to": stage.ends, "priority": 7}
        stage.send("a", **headers)
        stage.listen(Message.set_rollback_only, **spec)
        [delivery] = stage.harness.gather(stage.harness.connection.consumer(stage.out), 1)
        assert {name: getattr(delivery.message, name) for name in headers} == headers
