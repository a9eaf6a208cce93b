"""How a closed consumer gives back what came, and what comes while it closes."""

import pytest

from jmsjca.destinations import Queue
from tests.unit.stomp.letters import read

QUEUE = Queue("q")


def _frames(line):
    return [(command, dict(headers)) for command, headers, _ in read(bytes(line.channel.written))]


def _consumer(line, **options):
    consumer = line.connection.consumer(QUEUE, **options)
    name = _frames(line)[-1][1]["id"]
    line.channel.written.clear()
    return consumer, name


def _nacked(line):
    return [headers["id"] for command, headers in _frames(line) if command == "NACK"]


def test_rabbitmq_exchanges_a_subscription_for_a_silent_one_in_one_write(line):
    line = line("RabbitMQ/3")
    consumer, name = _consumer(line)
    writes = []
    line.channel.reactions["SUBSCRIBE"] = lambda _: writes.append(line.channel.last)
    consumer.close()
    assert [command for command, *_ in read(writes[0])] == ["UNSUBSCRIBE", "SUBSCRIBE"]
    frames = _frames(line)
    assert {headers["id"] for command, headers in frames if command.endswith("SUBSCRIBE")} == {name}
    assert [command for command, _ in frames] == [
        *("BEGIN", "UNSUBSCRIBE", "SUBSCRIBE", "BEGIN", "ABORT", "UNSUBSCRIBE", "COMMIT")
    ]


@pytest.mark.parametrize("moment", ["UNSUBSCRIBE", "SUBSCRIBE", "ABORT"])
def test_rabbitmq_gets_back_what_comes_while_its_consumer_closes(line, moment):
    line = line("RabbitMQ/3")
    consumer, name = _consumer(line)
    line.message(name, 1)
    consumer.release(consumer.receive(1, None))
    late = iter([True])
    line.channel.early[moment] = lambda _: line.message(name, 2) if next(late, None) else None
    consumer.close()
    assert _nacked(line) == ["m1", "m2"]
    assert line.channel.frames()[-2:] == ["UNSUBSCRIBE", "COMMIT"]


def test_rabbitmq_gets_back_each_message_while_its_own_subscription_is_there(line):
    line = line("RabbitMQ/3")
    consumer, one = _consumer(line, window=1)
    line.message(one, 1)
    line.channel.reactions["SUBSCRIBE"] = lambda headers: line.message(headers["id"], 2)
    held = [*consumer.receive(1, None), *consumer.receive(1, None)]
    line.channel.reactions.clear()
    line.channel.written.clear()
    consumer.release(held)
    consumer.close()
    commands = [command for command, _ in _frames(line)]
    assert _nacked(line) == ["m1", "m2"]
    assert commands[commands.index("NACK") + 1] == "UNSUBSCRIBE"
    assert commands.count("COMMIT") == 1


def test_others_get_everything_back_by_the_unsubscribe(line):
    line = line()
    consumer, name = _consumer(line)
    line.message(name, 1)
    consumer.release(consumer.receive(1, None))
    consumer.close()
    assert line.channel.frames() == ["UNSUBSCRIBE"]


@pytest.mark.parametrize("server", ["ActiveMQ/6", "RabbitMQ/3"])
def test_connection_ends_when_the_broker_takes_nothing_back(line, server):
    line = line(server)
    consumer, _ = _consumer(line)
    line.channel.refused = {"UNSUBSCRIBE"}
    consumer.close()
    assert line.lost.wait(30)
