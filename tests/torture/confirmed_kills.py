"""Kills a broker without transactions under load: nothing that it confirmed may be lost, or come again.

Each send is confirmed, and so is each acknowledgement. What was under way when the broker was killed is in doubt, so it
may be there or not, and come once more. Other disturbances than a kill can be passed.
"""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from brokers.broker import Broker

from jmsjca.destinations import Queue
from jmsjca.errors import JMSError
from jmsjca.messages import TextMessage
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.spi import Connection, Delivery
from jmsjca.testing.contract.harness import prepare

__all__ = ["Account", "run"]

QUEUE = Queue("confirmed.kills")
AT_WORK = 20  # sends and acknowledgements between two kills
PATIENCE = 60.0
IDLE = 3.0  # seconds after which nothing comes any more


@dataclass
class Account:
    """What the broker has confirmed."""

    sent: set[str] = field(default_factory=set[str])
    done: Counter[str] = field(default_factory=Counter[str])
    in_doubt: set[str] = field(default_factory=set[str])  # acknowledgements without a confirmation
    changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def lost(self) -> set[str]:
        """What was sent and never came."""
        return self.sent - set(self.done) - self.in_doubt

    @property
    def doubled(self) -> set[str]:
        """What came again although its acknowledgement was confirmed."""
        return {body for body, times in self.done.items() if times > 1}


Step = Callable[[Connection, Account, threading.Event], None]


def kill(broker: Broker) -> None:
    """Kill the broker, and start it on its data."""
    broker.kill()
    broker.start()


def run(broker: Broker, protocol: str, times: int, disturb: Callable[[Broker], None] = kill) -> Account:
    """Run the loop over a broker that runs, and that nobody else uses; disturb it so many times."""
    _declare(broker, protocol)
    account, ended = Account(), threading.Event()
    workers = [
        threading.Thread(target=_work, args=(step, broker.url(protocol), account, ended)) for step in (_send, _receive)
    ]
    for worker in workers:
        worker.start()
    try:
        for _ in range(times):
            _await_work(account)
            disturb(broker)
        _await_work(account)
    finally:
        ended.set()
        for worker in workers:
            worker.join(PATIENCE)
    _receive_rest(broker.url(protocol), account)
    return account


def _declare(broker: Broker, protocol: str) -> None:
    """Declare the queue, and let the broker shut down once: it writes down some seconds later that there is one."""
    connection = connect(ConnectionSettings(broker.url(protocol)))
    connection.check(QUEUE)
    connection.close()
    broker.restart()


def _work(step: Step, url: str, account: Account, ended: threading.Event) -> None:
    while not ended.is_set():
        try:
            connection = connect(ConnectionSettings(f"{url}?reply_timeout=10"))
            step(connection, account, ended)
            connection.close()
        except JMSError:
            ended.wait(0.05)  # the broker starts


def _send(connection: Connection, account: Account, ended: threading.Event) -> None:
    while not ended.is_set():
        body = f"{len(account.sent)}.{threading.get_ident()}.{id(connection)}"
        unit = connection.unit(atomic=False)
        unit.send(prepare(TextMessage(body), QUEUE), QUEUE)
        unit.commit()
        with account.changed:
            account.sent.add(body)
            account.changed.notify_all()


def _receive(connection: Connection, account: Account, ended: threading.Event) -> None:
    consumer = connection.consumer(QUEUE)
    while not ended.is_set():
        _acknowledge(connection, consumer.receive(5, 0.2), account)


def _acknowledge(connection: Connection, deliveries: Sequence[Delivery], account: Account) -> None:
    if not deliveries:
        return
    bodies = [delivery.message.body for delivery in deliveries]
    unit = connection.unit(atomic=False)
    unit.take(deliveries)
    try:
        unit.commit()
    except JMSError:
        account.in_doubt.update(bodies)
        raise
    with account.changed:
        account.done.update(bodies)
        account.changed.notify_all()


def _await_work(account: Account) -> None:
    with account.changed:
        sent, done = len(account.sent) + AT_WORK, account.done.total() + AT_WORK
        at_work = account.changed.wait_for(
            lambda: len(account.sent) >= sent and account.done.total() >= done, timeout=PATIENCE
        )
    assert at_work, "nobody is at work"


def _receive_rest(url: str, account: Account) -> None:
    connection = connect(ConnectionSettings(url))
    consumer = connection.consumer(QUEUE)
    while deliveries := consumer.receive(100, IDLE):
        _acknowledge(connection, deliveries, account)
    connection.close()
