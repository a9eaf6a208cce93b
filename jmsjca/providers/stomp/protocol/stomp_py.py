"""Everything that jmsjca uses of stomp.py. No other module imports it.

The public layers of stomp.py carry what is written and received one frame at a time: its listeners, its protocol
classes, its frame encoder and its heart-beat negotiation. docs/how-to/providers.md says which of its parts are
replaced, and gives the measurements and the defects that were the reason.
"""

# stomp.py has no annotations.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false

import os

# stomp.py looks up the names of this host while it is imported, unless this variable is set. That can take seconds, and
# serves only its choice of hosts, which is not used here.
_SKIP_HOSTNAME_SCAN = "STOMP_SKIP_HOSTNAME_SCAN"
_before = os.environ.get(_SKIP_HOSTNAME_SCAN)
os.environ[_SKIP_HOSTNAME_SCAN] = "1"
try:
    from stomp.listener import ConnectionListener
    from stomp.protocol import Protocol11, Protocol12
    from stomp.transport import BaseTransport
    from stomp.utils import Frame as StompFrame
    from stomp.utils import calculate_heartbeats, convert_frame, pack
finally:
    if _before is None:
        del os.environ[_SKIP_HOSTNAME_SCAN]
    else:
        os.environ[_SKIP_HOSTNAME_SCAN] = _before

__all__ = [
    "BaseTransport",
    "ConnectionListener",
    "Protocol11",
    "Protocol12",
    "StompFrame",
    "calculate_heartbeats",
    "convert_frame",
    "pack",
]
