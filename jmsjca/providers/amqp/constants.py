"""Proton's constants, which it attaches to its classes when it is imported, unseen by type checkers."""

from typing import Any

from proton import SASL, UNDESCRIBED, Data, Endpoint, Link, Terminus

__all__ = [
    "CONFIGURATION",
    "COORDINATOR",
    "COPY",
    "DELIVERIES",
    "EXPIRE_NEVER",
    "EXPIRE_WITH_LINK",
    "LOGGED_IN",
    "RECEIVER_SETTLES_FIRST",
    "REMOTE_CLOSED",
    "SENDER_UNSETTLED",
    "SYMBOLS",
    "UNSPECIFIED",
]

_data: Any = Data
_endpoint: Any = Endpoint
_link: Any = Link
_sasl: Any = SASL
_terminus: Any = Terminus

LOGGED_IN: int = _sasl.OK
RECEIVER_SETTLES_FIRST: int = _link.RCV_FIRST
REMOTE_CLOSED: int = _endpoint.REMOTE_CLOSED
SENDER_UNSETTLED: int = _link.SND_UNSETTLED
CONFIGURATION: int = _terminus.CONFIGURATION
COORDINATOR: int = _terminus.COORDINATOR
COPY: int = _terminus.DIST_MODE_COPY
DELIVERIES: int = _terminus.DELIVERIES
EXPIRE_NEVER: int = _terminus.EXPIRE_NEVER
EXPIRE_WITH_LINK: int = _terminus.EXPIRE_WITH_LINK
UNSPECIFIED: int = _terminus.UNSPECIFIED
SYMBOLS: tuple[Any, int] = (UNDESCRIBED, _data.SYMBOL)  # what an array of symbols begins with
