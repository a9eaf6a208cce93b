"""Ending a durable subscription: attach to it by its name alone, and close instead of detaching."""

from typing import Any

from jmsjca.errors import InvalidDestinationError, JMSError
from jmsjca.providers.amqp.conditions import text_of
from jmsjca.providers.amqp.constants import UNSPECIFIED
from jmsjca.providers.amqp.engine import Engine
from jmsjca.providers.amqp.link import LinkEnd

__all__ = ["end_subscription"]


def end_subscription(engine: Engine, name: str, reply_timeout: float) -> None:
    """End the durable subscription of this name.

    Raises:
        InvalidDestinationError: There is none.
    """
    link = _Reattached(engine, name, reply_timeout)
    link.attach()
    link.close()


class _Reattached(LinkEnd):
    def __init__(self, engine: Engine, name: str, reply_timeout: float) -> None:
        super().__init__(engine, f"the durable subscription {name}", reply_timeout)
        self._name = name

    def _make(self, session: Any, name: str) -> Any:
        link = session.receiver(self._name)
        link.source.type = UNSPECIFIED  # none: the name alone says which
        link.target.address = name
        return link

    def _is_refused(self) -> bool:
        return self._link.remote_source.address is None

    def _refusal(self, condition: Any) -> JMSError:
        return InvalidDestinationError(
            f"There is no durable subscription {self._name!r} to remove: {text_of(condition)}"
        )
