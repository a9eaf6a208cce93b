"""One connection of the small broker: links, credit, settlement, transactions, and what it stores."""

import struct
from collections import defaultdict, deque
from dataclasses import dataclass, field
from itertools import count

from amqp_peer.connection import Gone
from amqp_peer.encoding import Described, Symbol, UInt, ULong, decode, encode
from amqp_peer.frames import AMQP, SASL
from amqp_peer.performatives import (
    RECEIVER,
    SENDER,
    Accepted,
    Attach,
    Begin,
    Close,
    Coordinator,
    Declare,
    Declared,
    Detach,
    Discharge,
    Disposition,
    End,
    Flow,
    Init,
    Mechanisms,
    Modified,
    Open,
    Transactional,
    Transfer,
)
from amqp_peer.script import WINDOW, address_in, agree, command_of

__all__ = ["Kept", "Service", "Store"]

_HEADER = 0x70
_HEADER_SECTIONS = (bytes((0, 0x53, _HEADER)), bytes((0, 0x80, *bytes(7), _HEADER)))


@dataclass(eq=False)
class Kept:
    """A message in a queue, as it was sent, its place in the order, and how often handling it failed."""

    queue: str
    payload: bytes
    number: int
    failures: int = 0

    def with_header(self):
        """Its bytes, with the failures in the header if there were any. A damaged header stays as it is."""
        if not self.failures:
            return self.payload
        try:
            fields, end = self._header()
            fields = [*fields, None, None, None, None][:4]
            return encode(Described(ULong(_HEADER), [*fields, UInt(self.failures)])) + self.payload[end:]
        except (struct.error, ArithmeticError, LookupError, TypeError, ValueError):
            return self.payload

    def _header(self):
        if not self.payload.startswith(_HEADER_SECTIONS):  # what follows it may be anything
            return [], 0
        section, end = decode(self.payload)
        return section.value, end


@dataclass
class _Work:
    sent: list = field(default_factory=list)
    taken: list = field(default_factory=list)


class Store:
    """Queues by name, and transactions by id."""

    def __init__(self):
        self.queues = defaultdict(deque)
        self.transactions = {}
        self._numbers = count(1)

    def put(self, queue, payload):
        self.queues[queue].append(Kept(queue, payload, next(self._numbers)))

    def give_back(self, messages, *, failed):
        """Put messages where they were."""
        for message in messages:
            message.failures += failed
            queue = self.queues[message.queue]
            self.queues[message.queue] = deque(sorted([*queue, message], key=lambda m: m.number))

    def begin(self):
        txn_id = f"transaction {next(self._numbers)}".encode()
        self.transactions[txn_id] = _Work()
        return txn_id

    def end(self, txn_id, *, fail):
        """Let a transaction happen, or not at all."""
        work = self.transactions.pop(txn_id)
        if fail:
            self.give_back(work.taken, failed=True)
        else:
            for queue, payload in work.sent:
                self.put(queue, payload)


_PART = 60_000  # bytes of a message in one frame
_CREDIT = 1000  # what clients may send ahead


@dataclass
class _Link:
    channel: int
    handle: int
    attach: Attach
    given: int = 0
    credit: int = 0
    partial: bytes = b""
    shown: int = 0  # messages that a browser has seen

    def next_of(self, queue):
        """Take the next message of a queue, or show it to a browser; None if there is none."""
        if self.attach.source.distribution_mode != "copy":
            return queue.popleft() if queue else None
        self.shown += 1
        return queue[self.shown - 1] if self.shown <= len(queue) else None


class Service:
    """One connection of a `Broker`."""

    def __init__(self, broker, line, peer):
        self.broker, self.store, self.line, self.peer = broker, broker.store, line, peer
        self.links = {}
        self._numbers = {}  # of deliveries, by channel
        self._unsettled = {}
        self._transactions = set()
        self._handlers = {
            Init: self.agree,
            Open: self._open,
            Begin: self._begin,
            Attach: self._attach,
            Flow: self._flow,
            Transfer: self._transfer,
            Declare: self._declare,
            Discharge: self._discharge,
            Disposition: self._disposition,
            Detach: self._detach,
            End: self._end,
            Close: self._close,
        }

    def handle(self, frame):
        """Do what a broker does, or what the test wants instead."""
        if frame in (SASL, AMQP):
            offered = [Symbol(name) for name in self.broker.mechanisms]
            for each in (SASL, Mechanisms(offered=offered)) if frame == SASL else (AMQP,):
                self.line.write(each)
            return
        kind = type(self._command(frame) or frame.body)
        self.broker.seen[kind] += 1
        instead = self.broker.instead.get(kind)
        self.carry_out(frame) if instead is None else instead(self, frame)

    def carry_out(self, frame):
        """Do what a broker does."""
        self._handlers[type(self._command(frame) or frame.body)](frame)

    def agree(self, frame, **fields):
        self.line.write(agree(frame, **fields), frame.channel)

    def let_go(self):
        """The connection is gone: what it held is there again."""
        for txn_id in self._transactions & self.store.transactions.keys():
            self.store.end(txn_id, fail=True)
        self.store.give_back(self._unsettled.values(), failed=True)

    def _command(self, frame):
        link = self.links.get((frame.channel, frame.body.handle)) if isinstance(frame.body, Transfer) else None
        return command_of(frame) if link and isinstance(link.attach.target, Coordinator) else None

    def _open(self, frame):
        offers = [Symbol(name) for name in self.broker.offers] or None
        self.agree(frame, properties={Symbol("product"): self.broker.product}, offered_capabilities=offers)

    def _begin(self, frame):
        self._numbers[frame.channel] = count()
        self.agree(frame)

    def _attach(self, frame):
        if frame.channel not in self._numbers:
            return
        link = self.attach(frame)
        if frame.body.role == SENDER:
            self.tell_credit(link, _CREDIT)

    def attach(self, frame):
        """Attach a link, without credit."""
        link = _Link(frame.channel, frame.body.handle, frame.body)
        self.links[frame.channel, frame.body.handle] = link
        self.agree(frame)
        return link

    def _flow(self, frame):
        link = self.links.get((frame.channel, frame.body.handle))
        if link is None or link.attach.role == SENDER:
            return
        link.credit = (frame.body.delivery_count or 0) + frame.body.link_credit - link.given
        self.deliver()
        if frame.body.drain:
            link.given, link.credit = link.given + link.credit, 0
            self.tell_credit(link, 0, drain=True)
        elif self.broker.product == "RabbitMQ":  # it answers every one
            self.tell_credit(link, link.credit)

    def tell_credit(self, link, messages, *, drain=False):
        flow = Flow(
            next_incoming_id=0,
            incoming_window=WINDOW,
            next_outgoing_id=0,
            outgoing_window=WINDOW,
            handle=link.handle,
            delivery_count=link.given,
            link_credit=messages,
            drain=drain,
        )
        self.line.write(flow, link.channel)

    def deliver(self):
        """Send what credit allows."""
        for link in list(self.links.values()):
            queue = self.store.queues[link.attach.source.address] if link.attach.role == RECEIVER else ()
            while link.credit > 0 and link.shown <= len(queue) and (kept := link.next_of(queue)):
                link.given, link.credit = link.given + 1, link.credit - 1
                number = next(self._numbers[link.channel])
                if not link.shown:
                    self._unsettled[link.channel, number] = kept
                self._give(link, number, kept)

    def _give(self, link, number, kept):
        """Send a message, in as many frames as it takes."""
        data, tag = kept.with_header(), str(number).encode()
        parts = [data[at : at + _PART] for at in range(0, len(data) or 1, _PART)]
        for place, part in enumerate(parts, 1):
            numbered = {} if place > 1 else {"delivery_id": number, "delivery_tag": tag, "message_format": 0}
            transfer = Transfer(handle=link.handle, more=place < len(parts), **numbered)
            self.line.write(transfer, link.channel, part)

    def _transfer(self, frame):
        link = self.links.get((frame.channel, frame.body.handle))
        if link is None:  # it has ended, and the client does not know yet
            return
        link.partial += frame.payload
        if frame.body.more:
            return
        payload, link.partial = link.partial, b""
        queue = link.attach.target.address or address_in(payload)
        if isinstance(frame.body.state, Transactional):
            self.store.transactions[frame.body.state.txn_id].sent.append((queue, payload))
        else:
            self.store.put(queue, payload)
        if not frame.body.settled:
            self.agree(frame._replace(payload=payload))
        self._renew_credit(link)
        self.deliver()

    def _renew_credit(self, link):
        link.given += 1
        if link.given % (_CREDIT // 2) == 0:
            self.tell_credit(link, _CREDIT)

    def _declare(self, frame):
        txn_id = self.store.begin()
        self._transactions.add(txn_id)
        self.agree(frame, state=Declared(txn_id=txn_id))

    def _discharge(self, frame):
        command = self._command(frame)
        self.store.end(command.txn_id, fail=command.fail)
        self.agree(frame)
        self.deliver()

    def _disposition(self, frame):
        if frame.body.role == SENDER:
            return
        last = frame.body.first if frame.body.last is None else frame.body.last
        for number in range(frame.body.first, last + 1):
            kept = self._unsettled.pop((frame.channel, number), None)
            if kept is not None:
                self._settle(kept, frame.body.state)
        if not frame.body.settled:
            self.agree(frame)
        self.deliver()

    def _settle(self, kept, state):
        if isinstance(state, Transactional):
            self.store.transactions[state.txn_id].taken.append(kept)
        elif not isinstance(state, Accepted):
            self.store.give_back([kept], failed=isinstance(state, Modified) and bool(state.delivery_failed))

    def detach(self, frame, error=None):
        """Detach the link of a frame from our side; the client's detach is then the answer."""
        self.links.pop((frame.channel, frame.body.handle), None)
        self.line.write(Detach(handle=frame.body.handle, closed=True, error=error), frame.channel)

    def end(self, frame, error=None):
        """End the session of a frame from our side; the client's end is then the answer."""
        self._numbers.pop(frame.channel)
        for place in [place for place in self.links if place[0] == frame.channel]:
            del self.links[place]
        self.line.write(End(error=error), frame.channel)

    def _detach(self, frame):
        if self.links.pop((frame.channel, frame.body.handle), None):
            self.agree(frame)

    def _end(self, frame):
        if self._numbers.pop(frame.channel, None):
            self.agree(frame)

    def _close(self, frame):
        self.agree(frame)
        raise Gone
