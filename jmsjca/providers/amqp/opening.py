"""Opening consumers: what the connection and its broker make of what is asked for."""

from dataclasses import dataclass, field

from jmsjca.config import Limits
from jmsjca.errors import ConnectionLostError, IllegalStateError
from jmsjca.providers.amqp.broker import AMQPBroker
from jmsjca.providers.amqp.consumer import AMQPConsumer
from jmsjca.providers.amqp.consumers import Terms
from jmsjca.providers.amqp.engine import Engine
from jmsjca.providers.amqp.failures import Failures
from jmsjca.providers.amqp.mapping.origin import Origin
from jmsjca.providers.amqp.sources import Sources
from jmsjca.spi import Order

__all__ = ["Opening"]


@dataclass(frozen=True, slots=True)
class Opening:
    """Makes consumers.

    Args:
        engine: The connection.
        broker: What is at the other end.
        sources: What may be consumed from.
        limits: The bounds.
        reply_timeout: Seconds to wait for the broker's answers.
        failures: What failed here, for all consumers.
    """

    engine: Engine
    broker: AMQPBroker
    sources: Sources
    limits: Limits
    reply_timeout: float
    failures: Failures = field(default_factory=Failures)

    def open(self, terms: Terms, order: Order, window: int | None) -> AMQPConsumer:
        """Open a consumer.

        Args:
            terms: What it asks for.
            order: How its deliveries are settled.
            window: How many messages it takes ahead; None for as many as the limits say.

        Raises:
            JMSError: The broker refuses.
        """
        consumer = self._make(terms, order, self.limits.prefetch_messages if window is None else window)
        try:
            consumer.open()
        except ConnectionLostError as error:  # so hard a broker may refuse what another consumer has
            if any(words in str(error) for words in self.broker.in_use):
                raise IllegalStateError(f"{terms.source} is in use: {error}") from error
            raise
        return consumer

    def _make(self, terms: Terms, order: Order, window: int) -> AMQPConsumer:
        return AMQPConsumer(
            self.engine,
            self.sources.of(terms),
            Origin(terms.topic, self.broker.naming, self.broker.counts),
            order=order,
            window=window,
            limits=self.limits,
            reply_timeout=self.reply_timeout,
            drains=self.broker.drains,
            failures=self.failures,
            keeps=self.broker.data.capabilities.give_back == "local",
        )
