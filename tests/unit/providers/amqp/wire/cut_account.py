"""The jobs whose connection is cut, and the account of what they were told, held against what the broker has."""

from collections import Counter
from dataclasses import dataclass, field

from amqp_peer.encoding import Described, ULong, decode, encode

from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, JMSError, TransactionInDoubtError, TransactionRolledBackError
from jmsjca.messages import TextMessage
from jmsjca.testing.contract.harness import prepare

__all__ = ["JOBS", "MESSAGES", "Account", "body_of", "encoded"]

MESSAGES = 3
_SOURCE, _TARGET = Queue("in"), Queue("out")
_AMQP_VALUE, _PROPERTIES = 0x77, 0x73


@dataclass
class Account:
    """What was told of each message: how the units with it ended."""

    known: list = field(default_factory=list)
    rolled_back: list = field(default_factory=list)
    in_doubt: list = field(default_factory=list)
    lost: list = field(default_factory=list)  # the errors of other calls
    received: Counter = field(default_factory=Counter)
    begun: int = 0  # runs of the job, each on a connection of its own
    finished: bool = False  # the first run, without an error

    def commit(self, unit, what):
        try:
            unit.commit()
        except TransactionInDoubtError:
            self.in_doubt.append(what)
            raise
        except (TransactionRolledBackError, ConnectionLostError):
            self.rolled_back.append(what)
            raise
        self.known.append(what)

    def run(self, job, connect, patience=None):
        """Do a job on a new connection, as far as that goes; its close may take so many seconds."""
        connection = None
        self.begun += 1
        try:
            connection = connect()
            job(connection, self)
            self.finished = self.finished or self.begun == 1
        except (TransactionInDoubtError, TransactionRolledBackError):
            pass
        except JMSError as error:
            self.lost.append(error)
        finally:
            if connection is not None:
                connection.close(timeout=patience)


def move(connection, account):
    """Move what there is, each message in a unit; the first one is rolled back once."""
    consumer = connection.consumer(_SOURCE, window=0)
    while deliveries := consumer.receive(1, 0):
        body = deliveries[0].message.body
        account.received[body] += 1
        unit = connection.unit(atomic=connection.capabilities.atomic)
        unit.take(deliveries)
        unit.send(prepare(TextMessage(f"moved {body}"), _TARGET), _TARGET)
        if body == "0" and account.received[body] == 1:
            unit.rollback()
        else:
            account.commit(unit, body)
    consumer.close()


def batch(connection, account):
    """Receive ahead, and move all in one unit."""
    consumer = connection.consumer(_SOURCE, window=MESSAGES)
    deliveries = []
    while found := consumer.receive(MESSAGES, 0):
        deliveries += found
    account.received.update(d.message.body for d in deliveries)
    unit = connection.unit(atomic=connection.capabilities.atomic)
    unit.take(deliveries)
    for delivery in deliveries:
        unit.send(prepare(TextMessage(f"moved {delivery.message.body}"), _TARGET), _TARGET)
    account.commit(unit, "all")
    consumer.close()


def receive(connection, account):
    """Take what there is, each message acknowledged alone."""
    consumer = connection.consumer(_SOURCE, window=0)
    while deliveries := consumer.receive(1, 0):
        body = deliveries[0].message.body
        account.received[body] += 1
        unit = connection.unit(atomic=False)
        unit.take(deliveries)
        account.commit(unit, body)
    consumer.close()


def wait(connection, account):
    """Wait for each message, for ever; then take what is left."""
    consumer = connection.consumer(_SOURCE)
    while account.begun == 1 and sum(account.received.values()) < MESSAGES:
        deliveries = consumer.receive(1, None)
        assert deliveries, "nobody woke the receive, and it found nothing"
        account.received[deliveries[0].message.body] += 1
        unit = connection.unit(atomic=False)
        unit.take(deliveries)
        account.commit(unit, deliveries[0].message.body)
    consumer.close()
    receive(connection, account)


def browse(connection, account):
    """Look at all that there is before it is taken."""
    chunks = connection.browse(_SOURCE)
    shown = [delivery.message.body for chunk in chunks for delivery in chunk]
    if account.begun == 1:
        assert len(shown) == MESSAGES, "a browser ended without an error, before the end of the queue"
    receive(connection, account)


def send(connection, account):
    """Send each message alone, confirmed."""
    for number in range(MESSAGES):
        unit = connection.unit(atomic=False)
        unit.send(prepare(TextMessage(f"moved {number}"), _TARGET), _TARGET)
        account.commit(unit, str(number))


JOBS = {job.__name__: job for job in (move, batch, receive, wait, browse, send)}


def encoded(body):
    """A message that holds a text."""
    return encode(Described(ULong(_AMQP_VALUE), body))


def body_of(payload):
    """The text that a message holds."""
    at = 0
    while at < len(payload):
        section, at = decode(payload, at)
    return section.value
