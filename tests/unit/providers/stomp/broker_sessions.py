"""One connection to that broker, in the manner of each real broker."""

import socket
from contextlib import suppress
from dataclasses import dataclass, field

from tests.unit.providers.stomp.reference_frames import read, write

NOISE = b"HTTP/1.1 400 Bad Request\r\n\r\n"
OWN_HEADERS = ("destination", "destination-type", "receipt", "transaction", "content-length")


@dataclass
class Letter:
    """A message of a queue."""

    name: str
    headers: dict
    body: bytes
    seen: bool = False
    refused: bool = False
    sized: bool = True  # False for text of a Java client


@dataclass
class Subscription:
    queue: str
    cumulative: bool
    held: list = field(default_factory=list)  # what it was sent and has not settled


@dataclass
class Transaction:
    acks: list = field(default_factory=list)
    nacks: list = field(default_factory=list)
    sends: list = field(default_factory=list)
    doomed: bool = False


class Session:
    """As ActiveMQ has it: an ERROR ends nothing, a refused SEND dooms its transaction."""

    dooms_what_never_began = True

    def __init__(self, peer, client):
        self._peer, self._client = peer, client
        self._subscriptions, self._ended, self._transactions = {}, [], {}
        self._silent = False

    def serve(self):
        try:
            for command, headers, body in self._frames():
                self._take(command, dict(headers), body)
        except (OSError, CutError):
            pass
        finally:
            with suppress(OSError):  # nobody reads what is left
                self._client.shutdown(socket.SHUT_RDWR)
            self._client.close()
            for subscription in self._all():
                self._give_back(subscription)

    def _frames(self):
        data = b""
        while piece := self._client.recv(65536):
            data += piece
            while frame := _first(data):
                frames = read(frame, escaped=not frame.lstrip().startswith(b"CONNECT"))
                data = data[len(frame) :]
                yield from frames

    def _take(self, command, headers, body):
        kind = self._peer.at(command)
        if kind == "refuse":
            self._refuse(command, headers, body)
        elif not self._breaks(kind):
            getattr(self, f"_{command.lower()}")(headers, body)

    def _refuse(self, command, headers, body):
        if command == "SEND" and "transaction" in headers:
            self._of(headers).doomed = True
        self._error(headers)

    def _error(self, headers, text=""):
        named = {"receipt-id": headers["receipt"]} if "receipt" in headers else {}
        self._answer("ERROR", {"message": text or self._peer.refusal, **named})

    def _answer(self, command, headers, body=b""):
        kind = self._peer.at(command)
        if kind == "refuse":
            command, headers, body = "ERROR", {"message": self._peer.refusal}, b""
        if kind != "withhold" and not self._breaks(kind):
            self._client.sendall(write(command, headers, body) + b"\n")
            if command == "ERROR":
                self._after_error()

    def _after_error(self):
        """What an ERROR does to the connection: nothing."""

    def _breaks(self, kind):
        """Carry out what ends the conversation; True if nothing more is said."""
        if kind == "cut":
            raise CutError
        if kind == "noise":
            self._client.sendall(NOISE)
        self._silent |= kind == "silence"
        return self._silent

    def _connect(self, headers, body):
        self._answer("CONNECTED", self._peer.connected)

    def _subscribe(self, headers, body):
        queue = headers["destination"]
        self._subscriptions[headers["id"]] = Subscription(queue, headers["ack"] == "client")
        self._confirm(headers)
        self._deliver(queue)

    def _unsubscribe(self, headers, body):
        self._give_back(self._subscriptions.pop(headers["id"]))
        self._confirm(headers)

    def _begin(self, headers, body):
        self._transactions[headers["transaction"]] = Transaction()
        self._confirm(headers)

    def _abort(self, headers, body):
        self._transactions.pop(headers["transaction"], None)
        self._confirm(headers)

    def _ack(self, headers, body):
        name = headers.get("id") or headers["message-id"]
        if "transaction" in headers:
            self._of(headers).acks.append(name)
        else:
            self._settle(name)
        self._confirm(headers)

    def _send(self, headers, body):
        letter = Letter(self._peer.name(), headers, body)
        if "transaction" in headers:
            self._of(headers).sends.append(letter)
        else:
            self._publish(letter)
        self._confirm(headers)

    def _commit(self, headers, body):
        transaction = self._of(headers)
        del self._transactions[headers["transaction"]]
        if transaction.doomed:
            return self._error(headers, "COMMIT FAILED")
        for name in transaction.acks:
            self._settle(name)
        for letter in transaction.sends:
            self._publish(letter)
        return self._confirm(headers)

    def _disconnect(self, headers, body):
        self._confirm(headers)
        raise CutError

    def _of(self, headers):
        return self._transactions.setdefault(headers["transaction"], Transaction(doomed=self.dooms_what_never_began))

    def _all(self):
        return [*self._ended, *self._subscriptions.values()]

    def _confirm(self, headers):
        if "receipt" in headers:
            self._answer("RECEIPT", {"receipt-id": headers["receipt"]})

    def _publish(self, letter):
        self._peer.queues.setdefault(letter.headers["destination"], []).append(letter)

    def _deliver(self, queue):
        for name, subscription in self._subscriptions.items():
            while subscription.queue == queue and self._peer.queues.get(queue):
                letter = self._peer.queues[queue].pop(0)
                subscription.held.append(letter)
                plain = {k: v for k, v in letter.headers.items() if k not in OWN_HEADERS}
                told = {"destination": queue, "message-id": letter.name, "ack": letter.name, "subscription": name}
                seen = {"redelivered": "true"} if letter.seen else {}
                sized = {"content-length": str(len(letter.body))} if letter.sized else {}
                self._answer("MESSAGE", {**plain, **told, **seen, **sized}, letter.body)

    def _settle(self, name):
        for subscription in self._all():
            names = [letter.name for letter in subscription.held]
            if name in names:
                place = names.index(name)
                del subscription.held[0 if subscription.cumulative else place : place + 1]

    def _give_back(self, subscription):
        for letter in subscription.held:
            letter.seen = True
        self._peer.queues[subscription.queue] = subscription.held + self._peer.queues.get(subscription.queue, [])
        subscription.held = []


class EndingSession(Session):
    """As Artemis and Open MQ have it: an ERROR ends the connection, and with it what is not committed."""

    def _after_error(self):
        raise CutError


class LateSession(EndingSession):
    """As RabbitMQ has it: what a transaction holds is done one by one at its COMMIT, up to what is refused.

    What a subscription has sent stays with the connection, which gives it back at its end, or for a NACK.
    """

    def _refuse(self, command, headers, body):
        if command == "SEND" and "transaction" in headers:
            self._of(headers).sends.append(Letter("", headers, body, refused=True))
        else:
            self._error({}, "access_refused" if command == "SEND" else "")

    def _send(self, headers, body):
        if "transaction" in headers:
            self._of(headers).sends.append(Letter(self._peer.name(), headers, body))
        else:
            super()._send(headers, body)

    def _ack(self, headers, body):
        self._of(headers).acks.append(headers["id"])

    def _nack(self, headers, body):
        self._of(headers).nacks.append(headers["id"])

    def _subscribe(self, headers, body):
        if headers["ack"] == "auto":
            self._confirm(headers)  # it silences another one; nothing is ever sent to it
        else:
            super()._subscribe(headers, body)

    def _unsubscribe(self, headers, body):
        self._ended += [self._subscriptions.pop(headers["id"])] if headers["id"] in self._subscriptions else []
        self._confirm(headers)

    def _commit(self, headers, body):
        transaction = self._transactions.pop(headers["transaction"])
        for letter in transaction.sends:
            if letter.refused:
                self._error({}, "access_refused")
            self._publish(letter)
            self._confirm(letter.headers)
        for name in transaction.acks:
            self._settle(name)
        for subscription in self._ended:
            back = [letter for letter in subscription.held if letter.name in transaction.nacks]
            subscription.held = [letter for letter in subscription.held if letter not in back]
            self._give_back(Subscription(subscription.queue, cumulative=False, held=back))
        self._confirm(headers)


class CarelessSession(Session):
    """As the letter of STOMP allows: what is refused is left out, and the rest of its transaction done all the same."""

    dooms_what_never_began = False

    def _refuse(self, command, headers, body):
        self._error(headers)


class CutError(Exception):
    """The connection ends here."""


SESSIONS = {
    "ActiveMQ": Session,
    "ActiveMQ-Artemis": EndingSession,
    "Eclipse OpenMQ(tm)": EndingSession,
    "RabbitMQ": LateSession,
}


def session_of(server):
    """The manner of a broker by what it calls itself."""
    return SESSIONS.get((server or "").partition("/")[0], CarelessSession)


def _first(data):
    """The first whole frame with the line ends before it; nothing if there is none."""
    blank = len(data) - len(data.lstrip(b"\n"))
    head, end, rest = data[blank:].partition(b"\n\n")
    if not end:
        return b""
    lines = [line for line in head.split(b"\n") if line.startswith(b"content-length:")]
    size = int(lines[0][15:]) if lines else rest.find(b"\0")
    return data[: blank + len(head) + 2 + size + 1] if 0 <= size < len(rest) else b""
