"""Free ports on loopback."""

import random
import socket

HOST = "127.0.0.1"

# Below the range from which systems take the ports of outgoing connections: a client that reconnects while
# its broker is down would otherwise sooner or later be given the broker's port, or connect to itself.
CANDIDATES = range(20000, 32000)


def free_port(usual=None):
    """Return the usual port if nobody listens there, else some free one."""
    if usual and _is_free(usual):
        return usual
    return next(port for port in random.sample(CANDIDATES, len(CANDIDATES)) if _is_free(port))


def _is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
