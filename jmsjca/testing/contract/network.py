"""What a network can do to a unit: cases for brokers that are reached over one, through a wire that is cut.

They need a URL of AMQP 1.0 or STOMP in the clear. `TestRefusedSends` needs the fixture ``jms_refused_destination`` too:
a destination that the user of the URL may not send to. A provider's test module imports them beside those of
`jmsjca.testing.contract`.
"""

from jmsjca.testing.contract.cut_commits import TestCommitIsCut
from jmsjca.testing.contract.cut_connections import TestConnectionIsCut
from jmsjca.testing.contract.refused_sends import TestRefusedSends

__all__ = ["TestCommitIsCut", "TestConnectionIsCut", "TestRefusedSends"]
