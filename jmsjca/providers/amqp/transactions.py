"""Whether a broker that nobody tested has transactions: it is asked for one."""

from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.providers.amqp.wire import Wire

__all__ = ["has_transactions"]


def has_transactions(wire: Wire) -> bool:
    """Begin a transaction of nothing, and roll it back.

    Args:
        wire: The connection's links.

    Returns:
        True if the broker did both; then it is taken at its word.

    Raises:
        ConnectionLostError: It ended the connection over it, or did not answer.
    """
    try:
        transaction = wire.declare(wire.reply_timeout)
    except ConnectionLostError as error:
        raise ConnectionLostError(f"The broker was asked whether it has transactions: {error}") from error
    except JMSError:
        return False
    rolled_back = wire.roll_back(transaction)
    wire.check()
    return rolled_back
