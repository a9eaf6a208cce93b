"""One connection of Java's to a broker, with what tests ask of it."""

import itertools

from jms_java.described import describe, told_destination

SECONDS = 30

_numbers = itertools.count(1)


class JavaClient:
    """A connection of Java's, and sessions of it.

    Args:
        peer: The process of Java's.
        url: The broker.
        client_id: The connection's, if it needs one.
    """

    def __init__(self, peer, url, client_id=None):
        self._peer = peer
        self._connection = _name()
        peer.do("connect", self._connection, url=url, client_id=client_id)

    def session(self, mode="auto"):
        """Open a session."""
        name = _name()
        self._peer.do("session", name, connection=self._connection, mode=mode)
        return JavaSession(self._peer, name)

    def close(self):
        """Close the connection with all that is of it."""
        self._peer.do("close", self._connection)


class JavaSession:
    """A session of Java's. Messages are described as `describe` does."""

    def __init__(self, peer, name):
        self._peer = peer
        self._name = name

    def send(self, to, message, **options):
        """Send a message that is described, or one of ours as it is; gives what Java says that it sent."""
        told = message if isinstance(message, dict) else describe(message)
        return self._peer.do("send", self._name, to=told_destination(to), message=told, **options)

    def consumer(self, source, selector=None, **subscription):
        """Consume from a destination."""
        name, told = _name(), told_destination(source)
        self._peer.do("consumer", name, session=self._name, source=told, selector=selector, **subscription)
        return JavaConsumer(self._peer, name, self._name)

    def take(self, source, count=1, selector=None):
        """Receive so many messages with a consumer for these only."""
        consumer = self.consumer(source, selector)
        received = [consumer.receive() for _ in range(count)]
        consumer.close()
        return received

    def browse(self, source, selector=None):
        """Look at a queue."""
        return self._peer.do("browse", self._name, source=told_destination(source), selector=selector)

    def temporary(self, kind):
        """Make a temporary queue or topic: its kind and its name."""
        return self._peer.do("temporary", self._name, kind=kind)

    def unsubscribe(self, subscription):
        """Remove a durable subscription."""
        self._peer.do("unsubscribe", self._name, subscription=subscription)

    def commit(self):
        self._peer.do("commit", self._name)

    def rollback(self):
        self._peer.do("rollback", self._name)

    def recover(self):
        self._peer.do("recover", self._name)

    def close(self):
        """Close the session; what was not settled goes back."""
        self._peer.do("close session", self._name)


class JavaConsumer:
    """A consumer of Java's."""

    def __init__(self, peer, name, session):
        self._peer = peer
        self._name = name
        self._session = session

    def receive(self):
        """Receive a message, which must come."""
        told = self.receive_or_none(SECONDS)
        assert told is not None, "Java received nothing."
        return told

    def receive_or_none(self, seconds):
        """Receive a message; None if none comes in time."""
        return self._peer.do("receive", self._name, milliseconds=round(seconds * 1000))

    def acknowledge(self):
        self._peer.do("acknowledge", self._name)

    def reply(self, text):
        """Answer the message that was received last."""
        return self._peer.do("reply", self._name, session=self._session, text=text)

    def close(self):
        self._peer.do("close consumer", self._name)


def _name():
    return f"n{next(_numbers)}"
