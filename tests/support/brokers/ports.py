"""Free ports on loopback."""

import random
import socket

HOST = "127.0.0.1"

# Below the range from which systems take the ports of outgoing connections: a client that reconnects while
# its broker is down would otherwise sooner or later be given the broker's port, or connect to itself.
CANDIDATES = range(20000, 32000)


def free_ports():
    """Give free ports in no order, none of them twice."""
    return (port for port in random.sample(CANDIDATES, len(CANDIDATES)) if is_free(port))


def is_free(port):
    """Whether nobody listens there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
