"""Ending durable subscriptions."""

import uuid
from dataclasses import replace
from typing import Any

from jmsjca.errors import IllegalStateError, InvalidDestinationError, JMSError
from jmsjca.providers.amqp.addresses import Address
from jmsjca.providers.amqp.conditions import text_of
from jmsjca.providers.amqp.constants import UNSPECIFIED
from jmsjca.providers.amqp.engine import Engine
from jmsjca.providers.amqp.link import LinkEnd
from jmsjca.providers.amqp.source import Source, SubscriptionLink

__all__ = ["end_common_subscription", "end_subscription"]


def end_subscription(engine: Engine, name: str, reply_timeout: float) -> None:
    """End the durable subscription of this name and of this client: attach to it by its name alone, and close.

    Raises:
        InvalidDestinationError: There is none.
        IllegalStateError: It has consumers.
    """
    _end(_Reattached(engine, name, reply_timeout))


def end_common_subscription(engine: Engine, source: Source, reply_timeout: float) -> None:
    """End a durable subscription of all clients.

    They share its name and not its link, so attach to it as a consumer does, but with another selector: a broker makes
    the subscription anew for that, unless it has consumers. Whether there was one before cannot be seen.

    Args:
        engine: The connection.
        source: The subscription, with its topic.
        reply_timeout: Seconds to wait for the broker's answers.

    Raises:
        IllegalStateError: It has consumers.
    """
    nothing = f"jmsjca_ends = '{uuid.uuid4().hex}'"
    _end(_Probe(engine, replace(source, selector=nothing), reply_timeout))


def _end(link: "_Probe") -> None:
    link.attach()
    link.close()
    if link.objected is not None:
        raise link.objected


class _Probe(LinkEnd):
    """A consumer that asks for nothing."""

    def __init__(self, engine: Engine, source: Source, reply_timeout: float) -> None:
        source.check()
        super().__init__(engine, f"the subscription at {source.address.name}", reply_timeout)
        self._source = source
        self.objected: JMSError | None = None

    def on_close(self, condition: Any) -> None:
        """The broker may object to the end."""
        if condition is not None and self._opened.done():
            self.objected = IllegalStateError(f"The broker does not end {self._what}: {text_of(condition)}")
        super().on_close(condition)

    def _make(self, session: Any, name: str) -> Any:
        link = session.receiver(self._source.subscription.name if self._source.subscription else name)
        self._source.apply(link.source)
        link.target.address = name
        return link

    def _is_refused(self) -> bool:
        return self._link.remote_source.address is None

    def _refusal(self, condition: Any) -> JMSError:
        return self._source.refusal(condition) or super()._refusal(condition)


class _Reattached(_Probe):
    """A consumer that knows nothing but the name of its link."""

    def __init__(self, engine: Engine, name: str, reply_timeout: float) -> None:
        super().__init__(engine, Source(Address(name, None), subscription=SubscriptionLink(name, True)), reply_timeout)

    def _make(self, session: Any, name: str) -> Any:
        link = super()._make(session, name)
        link.source.type = UNSPECIFIED  # none: the name alone says which
        return link

    def _refusal(self, condition: Any) -> JMSError:
        return InvalidDestinationError(f"There is nothing to remove as {self._what}: {text_of(condition)}")
