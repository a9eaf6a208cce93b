"""Event connectors on top of the adapter: the activities of Jitterbit's JMS connector."""

from jmsjca.connector.activities import Activities
from jmsjca.connector.responses import ListenResponse, PollResponse

__all__ = ["Activities", "ListenResponse", "PollResponse"]
