"""Messages that anybody may send and nobody can decode: a listener moves them as their bytes, and goes on."""

import json

import pytest

from jmsjca.redelivery import RedeliveryPolicy
from tests.unit.delivering.stage import Performance, endpoint_of, terms, until
from tests.unit.stomp.letters import read, write

POISON = ['{"i":5}', '{"i":["a"]}', '{"c":5}', '{"y":[1]}', '{"r":["queue",5]}', '{"p":{"a":{"b":1}}}']
POLICY = RedeliveryPolicy.parse("1:move(queue:dlq)", "q", "queue")


@pytest.mark.parametrize("mode", ["sync", "cc", "serial"])
@pytest.mark.parametrize("ours", POISON)
def test_it_is_moved_as_its_bytes_and_the_next_is_handled(line, mode, ours):
    line, handled = line(), []
    endpoint = endpoint_of(lambda message: handled.append(message.body), terms(mode, pool_size=1, redelivery=POLICY))
    performance = Performance(endpoint, line.connection)
    until(lambda: "SUBSCRIBE" in line.channel.frames())
    subscription = dict(read(bytes(line.channel.written))[0][1])["id"]
    poison = {"destination": "/queue/q", "message-id": "m1", "subscription": subscription, "ack": "a1"}
    line.channel.incoming.put(write("MESSAGE", {**poison, "redelivered": "true", "_jmsjca": ours}, b"1"))
    until(lambda: performance.ended or _moved(line))
    line.message(subscription, 2)
    until(lambda: performance.ended or handled)
    performance.stop()
    assert (_moved(line), handled) == ([("/queue/dlq", "bytes", b"1")], ["2"])


def _moved(line):
    sent = [(dict(headers), body) for command, headers, body in read(bytes(line.channel.written)) if command == "SEND"]
    return [(headers["destination"], json.loads(headers["_jmsjca"])["k"], body) for headers, body in sent]
