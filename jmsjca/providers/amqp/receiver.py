"""The receiving end of a link, as the engine's thread sees it: credit, arrivals, settlement."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from proton import Condition, Described, Link, Terminus, symbol

from jmsjca.errors import InvalidSelectorError, JMSError, NotSupportedError, ResourceAllocationError
from jmsjca.providers.amqp.addresses import Address
from jmsjca.providers.amqp.conditions import text_of
from jmsjca.providers.amqp.engine import Engine
from jmsjca.providers.amqp.link import LinkEnd

__all__ = ["Arrivals", "ReceivingLink", "Source"]

_SELECTOR = symbol("apache.org:selector-filter:string")
_NO_LOCAL = symbol("apache.org:no-local-filter:list")


class Arrivals(Protocol):
    """Who is given what arrives. Called on the engine's thread."""

    def arrived(self, encoded: bytes, handle: int) -> None:
        """A message is complete."""
        ...

    def broken(self, error: JMSError) -> None:
        """Nothing more will come."""
        ...


class Source:
    """What to receive from.

    Args:
        address: Where from.
        selector: Which messages; None for all.
        browse: True to look at copies.
        durable: The name of a durable subscription; None if it ends with the link.
        no_local: True to be spared what this connection sends.
    """

    def __init__(
        self,
        address: Address,
        *,
        selector: str | None = None,
        browse: bool = False,
        durable: str | None = None,
        no_local: bool = False,
    ) -> None:
        self.address = address
        self.selector = selector
        self.browse = browse
        self.durable = durable
        self._no_local = no_local

    def apply(self, terminus: Any) -> None:
        """Write it into a source of proton."""
        self.address.apply(terminus)
        filters: dict[symbol, Described] = {}
        if self.selector:
            filters[symbol("jms-selector")] = Described(_SELECTOR, self.selector)
        if self._no_local:
            filters[symbol("no-local")] = Described(_NO_LOCAL, [])
        if filters:
            terminus.filter.put_object(filters)
        if self.browse:
            terminus.distribution_mode = Terminus.DIST_MODE_COPY
        if self.durable:
            terminus.durability = Terminus.DELIVERIES
            terminus.expiry_policy = Terminus.EXPIRE_NEVER


class ReceivingLink(LinkEnd):
    """A link from one source. Everything but `attach` and `shut_down` belongs on the engine's thread.

    Args:
        engine: The connection.
        source: Where from.
        arrivals: Who is given what arrives.
        message_bytes: The largest message that is taken.
        reply_timeout: Seconds to wait for the broker's answers.
        drains: True if the broker understands drain.
    """

    def __init__(
        self,
        engine: Engine,
        source: Source,
        arrivals: Arrivals,
        message_bytes: int,
        reply_timeout: float,
        *,
        drains: bool,
    ) -> None:
        super().__init__(engine, f"the receiver from {source.address.name}", reply_timeout)
        self._drains = drains
        self._source = source
        self._arrivals = arrivals
        self._message_bytes = message_bytes
        self._unsettled: dict[int, Any] = {}
        self._echoes: list[_Echo] = []
        self._drained: Future[bool] | None = None
        self._answer_owed = False
        self._granted = 0
        self._received = 0

    def grant(self, credit: int) -> None:
        """Ask for so many more messages."""
        if self.error is None:
            self._granted += credit
            self._link.flow(credit)

    def drain(self) -> "Future[bool]":
        """Ask for no more than what is on its way; done when that has come.

        Its result tells whether the broker's answer means that it has no more: when messages used up the credit of an
        earlier drain, its answer may still be under way, and be taken for that of this one.
        """
        if self._drained is not None:
            return self._drained
        drained: Future[bool] = Future()
        if self.error is not None or self._ended.done() or self._link.credit == 0:
            drained.set_result(False)
            return drained
        self._drained = drained
        if self._drains:
            self._link.drain(0)
        else:
            self._take_credit_back()
        return drained

    def settle(self, handles: Sequence[int], update: Callable[[Any], None]) -> None:
        """Give deliveries a state, and settle them."""
        for handle in handles:
            delivery = self._unsettled.pop(handle, None)
            if delivery is not None:
                delivery.handle = None  # proton uses the object again for another message
                update(delivery)
                delivery.settle()

    def round_trip(self) -> "Future[None]":
        """Done when the broker has handled everything that was written before: one more link is attached and closed."""
        echo = _Echo(self._session, self._source.address)
        self._echoes = [e for e in self._echoes if not e.done.done()] + [echo]
        if self.error is not None:
            echo.done.set_exception(self.error)
        return echo.done

    def shut_down(self, *, keep: bool = False) -> None:
        """Close the link, or only detach from it so that the broker keeps the subscription."""
        if self._drained is not None:
            self._end_drain(conclusive=False)
        if self._ended.done():
            return
        if keep:
            self._link.detach()
            self._ended.set_result(None)
            self._session.close()
            self._engine.release(self)
        else:
            self.shut()

    def on_flow(self) -> None:
        """The broker tells its view of the credit; if none is left, a drain is complete."""
        if not self._drains:
            return
        taken = self._granted - self._link.credit
        if self._drained is not None:
            if self._link.credit == 0:
                self._end_drain(conclusive=not self._answer_owed)
                self._answer_owed = False
        elif taken > 0:  # the late answer to a drain that messages had completed took the next credit, too
            self._answer_owed = False
            self._link.flow(taken)

    def on_delivery(self, delivery: Any) -> None:
        """A message, or a part of one. Of those that are complete the broker has nothing to say."""
        if getattr(delivery, "handle", None) is not None:
            return
        if delivery.aborted:
            delivery.settle()
        elif delivery.pending > self._message_bytes:
            self._refuse_size(delivery)
        elif delivery.readable and not delivery.partial:
            self._take(delivery)

    def _take_credit_back(self) -> None:
        """Without drain: let the broker use the credit, take back the rest, and wait for what was under way.

        Its session handles frames in order and hands messages over on the side: hence the second round trip at the end.
        """
        steps: list[Callable[[], Any]] = [
            lambda: self._link.flow(-self._link.credit),
            lambda: None,
            lambda: self._end_drain(conclusive=True),
        ]

        def next_step(_: "Future[None] | None" = None) -> None:
            if self.error is None and not self._ended.done():
                steps.pop(0)()
                if steps:
                    self.round_trip().add_done_callback(next_step)

        self.round_trip().add_done_callback(next_step)

    def _take(self, delivery: Any) -> None:
        self._received += 1
        self._granted -= 1
        delivery.handle = self._received
        encoded = bytes(self._link.recv(delivery.pending) or b"")
        self._link.advance()
        self._unsettled[self._received] = delivery
        self._arrivals.arrived(encoded, self._received)
        if self._drained is not None and self._drains and self._link.credit == 0:
            self._answer_owed = True
            self._end_drain(conclusive=False)

    def _refuse_size(self, delivery: Any) -> None:
        """Stop a message that is too large while it arrives."""
        text = f"A message of more than {self._message_bytes} bytes came from {self._source.address.name}"
        delivery.settle()
        self._link.condition = Condition("amqp:link:message-size-exceeded", text)
        self._fail(ResourceAllocationError(f"{text}; raise Limits.message_bytes, or remove it at the broker."))
        self.shut()

    def _end_drain(self, *, conclusive: bool) -> None:
        drained, self._drained = self._drained, None
        self._granted = 0
        if self._drains:
            self._link.drain_mode = False
        if drained is not None and not drained.done():
            drained.set_result(conclusive)

    def _make(self, session: Any, name: str) -> Any:
        link = session.receiver(self._source.durable or name)
        self._source.apply(link.source)
        link.target.address = name
        link.rcv_settle_mode = Link.RCV_FIRST
        link.snd_settle_mode = Link.SND_UNSETTLED
        link.max_message_size = self._message_bytes
        return link

    def _is_refused(self) -> bool:
        return self._link.remote_source.address is None

    def _accepted(self) -> None:
        """A broker that does not know a filter drops it: then everything would come."""
        if not self._source.selector:
            return
        filters: Any = self._link.remote_source.filter
        if not (filters.next() and filters.get_object()):
            raise NotSupportedError("The broker ignored the selector.")

    def _refusal(self, condition: Any) -> JMSError:
        if self._source.selector and condition and condition.name in {"amqp:invalid-field", "amqp:not-implemented"}:
            return InvalidSelectorError(f"The broker refuses the selector: {text_of(condition)}")
        return super()._refusal(condition)

    def _fail(self, error: JMSError) -> None:
        super()._fail(error)
        self._unsettled.clear()
        if self._drained is not None:
            self._end_drain(conclusive=False)
        for echo in self._echoes:
            echo.on_lost(error)
        self._arrivals.broken(error)


class _Echo:
    """A sender that is attached to hear the broker answer, and closed at once.

    Args:
        session: The session whose frames must have been handled.
        address: A node that exists.
    """

    def __init__(self, session: Any, address: Address) -> None:
        self.done: Future[None] = Future()
        self._link = session.sender(f"jmsjca-echo-{id(self)}")
        self._link.owner = self
        address.apply(self._link.target)
        self._link.source.address = self._link.name
        self._link.open()

    def on_open(self) -> None:
        """The answer."""
        if not self.done.done():
            self.done.set_result(None)
        self._link.close()

    def on_close(self, condition: Any) -> None:
        """Also an answer, unless it came before."""
        del condition
        if not self.done.done():
            self.done.set_result(None)

    def on_flow(self) -> None:
        """Credit is of no use here."""

    def on_delivery(self, delivery: Any) -> None:
        """Nothing is sent."""

    def on_lost(self, error: JMSError) -> None:
        """There will be no answer."""
        if not self.done.done():
            self.done.set_exception(error)
