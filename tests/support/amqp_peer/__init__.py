"""A peer of AMQP 1.0 for tests, with a codec of its own: conversations by script, a small broker, and cuts anywhere."""

from amqp_peer.connection import Cut, Gone
from amqp_peer.peer import SECONDS, Broker, Peer

__all__ = ["SECONDS", "Broker", "Cut", "Gone", "Peer"]
