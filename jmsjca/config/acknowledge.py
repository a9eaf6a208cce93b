"""How the messages that a session receives are acknowledged."""

from enum import Enum

__all__ = ["AcknowledgeMode"]


class AcknowledgeMode(Enum):
    """The acknowledgement of a session that is not transacted (JMS 3.1, section 6.2.10)."""

    AUTO = "auto"
    """Each message is acknowledged as it is handed over: never twice, but lost if the program dies with it."""
    CLIENT = "client"
    """`Message.acknowledge` acknowledges everything that the session has received."""
    DUPS_OK = "dups_ok"
    """As AUTO; the provider may acknowledge late, and repeat messages after a failure."""
    INDIVIDUAL = "individual"
    """`Message.acknowledge` acknowledges that one message."""
