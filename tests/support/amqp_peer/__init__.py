"""A peer of AMQP 1.0 for tests, with a codec of its own: conversations by script, a small broker, and cuts anywhere."""

from amqp_peer.broker import Broker
from amqp_peer.line import Cut, Gone
from amqp_peer.peer import SECONDS, Peer

__all__ = ["SECONDS", "Broker", "Cut", "Gone", "Peer"]
