"""Whether a broker that nobody tested has transactions: it is asked for one."""

import logging

from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.providers.amqp.engine import Engine
from jmsjca.providers.amqp.wire import Wire

__all__ = ["has_transactions"]

logger = logging.getLogger("jmsjca.amqp")

_PATIENCE = 1.0  # seconds for the end of a connection that is lost already


def has_transactions(engine: Engine, wire: Wire) -> bool | None:
    """Begin a transaction of nothing, and roll it back.

    Args:
        engine: The connection, which nobody uses yet: if it is lost meanwhile, nobody is told.
        wire: Its links.

    Returns:
        True if the broker did both; then it is taken at its word. None if it ended the connection over the question, or
        did not answer it.
    """
    try:
        engine.call(lambda: engine.remote.try_out(on=True))
        answer = _declares(wire)
        engine.call(lambda: engine.remote.try_out(on=False))
    except ConnectionLostError as error:
        logger.info("The broker was asked whether it has transactions, and the connection ended: %s", error)
        engine.close(_PATIENCE)
        return None
    return answer


def _declares(wire: Wire) -> bool:
    try:
        transaction = wire.declare(wire.reply_timeout)
    except ConnectionLostError:
        raise
    except JMSError:
        return False
    return wire.roll_back(transaction)
