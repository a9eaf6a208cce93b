"""Senders while a broker takes no messages, as RabbitMQ does during an alarm for memory or disk space."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import Attach

from jmsjca.destinations import Queue
from jmsjca.errors import TransactionInDoubtError
from jmsjca.messages import TextMessage
from jmsjca.testing.contract.harness import prepare
from tests.unit.providers.amqp.wire.cut_account import body_of

WAITED = 5


class Alarm:
    """A broker that gives its links no credit until the alarm ends, and a connection that sends to it."""

    def __init__(self, stage, options=""):
        self.broker, self.waiting, self.links, self.ended = Broker("RabbitMQ"), threading.Event(), [], False
        self.broker.instead[Attach] = self._attach
        self.stage = stage(self.broker)
        self.connection = self.stage.connect(options)

    def _attach(self, service, frame):
        link = service.attach(frame)
        self.links.append((service, link))
        if self.ended:
            service.tell_credit(link, 100)
        self.waiting.set()

    def end(self):
        self.ended = True
        for service, link in self.links:
            service.tell_credit(link, 100)

    def send(self, *bodies, connection=None):
        unit = (connection or self.connection).unit(atomic=False)
        for body in bodies:
            unit.send(prepare(TextMessage(body), Queue("q")), Queue("q"))
        unit.commit()

    @property
    def bodies(self):
        return [body_of(kept.payload) for kept in self.broker.store.queues["/queue/q"]]


def test_a_sender_waits_during_an_alarm_and_sends_each_message_once_when_it_ends(stage):
    alarm = Alarm(stage)
    with ThreadPoolExecutor() as threads:
        sending = threads.submit(alarm.send, "a", "b", "c")
        assert alarm.waiting.wait(SECONDS)
        assert alarm.bodies == []
        alarm.end()
        sending.result(SECONDS)
    assert alarm.bodies == ["a", "b", "c"]


def test_a_sender_that_waited_too_long_is_told_and_its_messages_are_never_sent(stage):
    alarm = Alarm(stage, f"reply_timeout={WAITED}")
    with pytest.raises(TransactionInDoubtError, match=f"within {WAITED} s: .*; it may give no credit"):
        alarm.send("a")
    alarm.ended = True
    alarm.send("b", connection=alarm.stage.connect())
    assert alarm.bodies == ["b"]
