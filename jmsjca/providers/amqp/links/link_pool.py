"""Where a connection sends from: a link for each destination, not more than so many, and a relay where there is one."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from jmsjca.destinations import Destination
from jmsjca.errors import ConnectionLostError, JMSError, TransactionInDoubtError
from jmsjca.providers.amqp.addresses import address_of
from jmsjca.providers.amqp.broker import AMQPBroker
from jmsjca.providers.amqp.engine import Engine
from jmsjca.providers.amqp.sender import RelayLink, SendingLink
from jmsjca.providers.amqp.sending import Sending, Then

__all__ = ["MOST_SENDERS", "Outgoing", "Senders"]

Outgoing = Mapping[Destination, Sequence[bytes]]  #: encoded messages by where they go

MOST_SENDERS = 64  #: so many destinations have a link of their own


class Senders:
    """The links over which units send. Whoever commits or prepares has them for himself meanwhile.

    The first destinations get links of their own: to attach one tells at once whether the broker lets us send there.
    What goes elsewhere is sent over one link to all destinations, if the broker has such a relay; else the link that
    was not used for longest makes room.

    Args:
        engine: The connection.
        broker: What is at the other end.
        reply_timeout: Seconds to wait for the broker's answers.
    """

    def __init__(self, engine: Engine, broker: AMQPBroker, reply_timeout: float) -> None:
        self._engine = engine
        self._broker = broker
        self._reply_timeout = reply_timeout
        self._relay: SendingLink | None = None
        self._links: dict[Destination, SendingLink] = {}  # the least recently used first

    def prepare(self, destinations: Collection[Destination], timeout: float) -> None:
        """See that there are links. What a relay serves is refused only when it is sent.

        Args:
            destinations: Where to.
            timeout: Seconds to wait for each link.

        Raises:
            InvalidDestinationError: The broker does not let us send there.
        """
        for to in destinations:
            self._link_to(to, timeout)

    def check(self, to: Destination, timeout: float) -> None:
        """Attach a link of its own to a destination, whatever it takes.

        Raises:
            InvalidDestinationError: The broker does not let us send there.
        """
        self._own_link_to(to, timeout)
        self._make_room()

    def send(self, outgoing: Outgoing, transaction: bytes | None, timeout: float, then: Then | None = None) -> Any:
        """Send, and wait until the broker has taken everything.

        Args:
            outgoing: What to send.
            transaction: In which; None outside any.
            timeout: Seconds to wait for each answer.
            then: What follows at once on the engine's thread, and is waited for, too.

        Returns:
            The answer to that.

        Raises:
            TransactionInDoubtError: Some were or may have been sent, outside any transaction, and others not.
            JMSError: None were sent, or it happened in a transaction, which must be rolled back.
        """
        some, answer = False, None
        parts = list(_parts(outgoing, len(outgoing) if self._broker.relays else MOST_SENDERS))
        for part in parts:
            then_now = then if part is parts[-1] else None
            sending = Sending(
                sum(map(len, part.values())),
                transaction,
                self._engine.now,
                settled=self._broker.settled_sends,
                then=then_now,
            )
            try:
                answer = self._send(part, sending, timeout)
            except ConnectionLostError:
                raise
            except JMSError as error:
                doubt = _doubt(sending, some=some) if transaction is None else None
                if doubt is None:
                    raise
                raise TransactionInDoubtError(f"{doubt}: {error}") from error
            some = True
        return answer

    def _send(self, outgoing: Outgoing, sending: Sending, timeout: float) -> Any:
        links = [(self._link_to(to, timeout), to, payloads) for to, payloads in outgoing.items()]
        self._engine.tell(partial(_write, links, sending), sending.done)
        return self._engine.wait(sending.done, timeout, "the messages of a unit, or its end", lambda: sending.latest)

    def _link_to(self, to: Destination, timeout: float) -> SendingLink:
        if self._is_relayed(to):
            address_of(to, self._broker.naming).check()  # it would take a name that no consumer can have
            return self._relay_link(timeout)
        link = self._own_link_to(to, timeout)
        if not self._broker.relays:
            self._make_room()
        return link

    def _is_relayed(self, to: Destination) -> bool:
        return len(self._links) >= MOST_SENDERS and to not in self._links and self._broker.relays_to(to)

    def _relay_link(self, timeout: float) -> SendingLink:
        if self._relay is None or self._relay.error is not None:
            self._relay = self._attached(RelayLink(self._engine, self._reply_timeout), timeout)
        return self._relay

    def _own_link_to(self, to: Destination, timeout: float) -> SendingLink:
        link = self._links.pop(to, None)
        if link is None or link.error is not None:
            address = address_of(to, self._broker.naming)
            link = self._attached(SendingLink(self._engine, address, self._reply_timeout), timeout)
        self._links[to] = link
        return link

    def _attached(self, link: SendingLink, timeout: float) -> SendingLink:
        link.attach(timeout)
        return link

    def _make_room(self) -> None:
        while len(self._links) > MOST_SENDERS:
            oldest = self._links.pop(next(iter(self._links)))
            self._engine.call(oldest.shut)


def _parts(outgoing: Outgoing, most: int) -> Iterator[Outgoing]:
    """The same in parts of so many destinations at most."""
    left = iter(outgoing.items())
    while part := dict(islice(left, most)):
        yield part


def _doubt(sending: Sending, *, some: bool) -> str | None:
    """What makes the end of a failed unit doubtful, if anything does."""
    if some or sending.some:
        return "Some messages of the unit were sent, and others not"
    return "Some messages may have been sent" if sending.in_doubt else None


def _write(links: Sequence[tuple[SendingLink, Destination, Sequence[bytes]]], sending: Sending) -> None:
    for link, to, payloads in links:
        link.send(payloads, sending, to)
