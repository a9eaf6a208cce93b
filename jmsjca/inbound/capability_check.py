"""Checks for features that the broker lacks: refused, or replaced and logged."""

import logging
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

from jmsjca import spi
from jmsjca.destinations import Destination, Subscription
from jmsjca.errors import JMSError, NotSupportedError
from jmsjca.inbound.endpoint import EndpointSettings
from jmsjca.inbound.log_fields import EventSource, log_fields
from jmsjca.log_records import get_logger
from jmsjca.redelivery.policy import Move

__all__ = ["CapabilityCheck"]

logger = get_logger("jmsjca.inbound")

_Test = Callable[[EndpointSettings, spi.Capabilities], bool]

_UNSUPPORTED: tuple[tuple[str, _Test], ...] = (
    (
        "a selector: it lacks the capability selectors",
        lambda settings, can: bool(settings.selector) and not can.selectors,
    ),
    (
        "a durable subscription: it lacks the capability durable",
        lambda settings, can: isinstance(settings.source, Subscription) and settings.source.durable and not can.durable,
    ),
    (
        "forwarding and acknowledging messages in one transaction: it lacks the capability atomic",
        lambda settings, can: settings.requires_atomic_unit and not can.atomic,
    ),
    (
        "transaction='required': it lacks the capability atomic",
        lambda settings, can: settings.joined and not can.atomic,
    ),
)

_DEGRADED: tuple[tuple[str, _Test], ...] = (
    (
        "moves a message by sending, then acknowledging: without a transaction for both (atomic) it may be duplicated.",
        lambda settings, can: isinstance(settings.redelivery.last_action, Move) and not can.atomic,
    ),
    (
        "acknowledges a batch one by one: without a transaction (transacted_receive) a part may be redelivered.",
        lambda settings, can: settings.batch_size > 0 and not can.transacted_receive,
    ),
)

_EMULATED: tuple[tuple[str, _Test], ...] = (
    (
        "has one receiver in mode sync: each of several receivers would get every message of the topic.",
        lambda settings, _: settings.mode == "sync" and settings.destination.kind == "topic",
    ),
    (
        "refuses sends in the unit of a message: the broker cannot acknowledge and send in one transaction (atomic).",
        lambda settings, can: settings.transacted and not can.atomic,
    ),
    (
        "counts redeliveries itself, until the process ends: the broker does not (delivery_count).",
        lambda settings, can: bool(settings.redelivery.rules) and not can.delivery_count,
    ),
)


class CapabilityCheck:
    """Compares the settings of an endpoint with the capabilities of each connection. Logs each difference once.

    Args:
        source: The fields of the endpoint's log records.
    """

    def __init__(self, source: EventSource) -> None:
        self._source = source
        self._name = source.endpoint
        self._logged: set[str] = set()

    def check(self, settings: EndpointSettings, connection: spi.Connection) -> None:
        """Refuse settings that the connection does not support, and log what is replaced.

        Raises:
            NotSupportedError: The broker lacks a capability for which there is no replacement.
        """
        can = connection.capabilities
        refused = [what for what, holds in _UNSUPPORTED if holds(settings, can)]
        if refused:
            raise NotSupportedError(f"The broker of {self._name} does not support {', nor '.join(refused)}.")
        for level, reasons in ((logging.WARNING, _DEGRADED), (logging.INFO, _EMULATED)):
            for reason, holds in reasons:
                if holds(settings, can):
                    self._log_once(level, reason)

    def check_max_deliveries(self, settings: EndpointSettings, connection: spi.Connection) -> None:
        """Warn if the broker removes messages before the redelivery handling reaches its last action.

        A broker on a network is asked on another thread: it may answer slowly, and messages must not wait for that.
        """
        if not (settings.redelivery.highest_index and connection.capabilities.admin):
            return
        if connection.capabilities.configurable:
            self._check_max_deliveries(settings, connection)
        else:
            Thread(
                target=self._check_max_deliveries, args=(settings, connection), name=f"jmsjca {self._name}", daemon=True
            ).start()

    def _check_max_deliveries(self, settings: EndpointSettings, connection: spi.Connection) -> None:
        highest, most = settings.redelivery.highest_index, _most_deliveries(settings.destination, connection)
        if most is not None and most <= highest:
            self._log_once(
                logging.WARNING,
                f"has a redelivery handling that ends with the redelivery {highest}, but the broker delivers a message "
                f"{most} times at most: set max_deliveries to {highest + 1} at least.",
            )

    def _log_once(self, level: int, reason: str) -> None:
        if reason not in self._logged:
            self._logged.add(reason)
            logger.log(level, "%s %s", self._name, reason, extra=log_fields("delivery_limit", self._source))


def _most_deliveries(source: Destination, connection: spi.Connection) -> int | None:
    """Return the broker's limit of deliveries of a message; None if it has no limit or does not say."""
    with suppress(JMSError):
        admin = connection.admin()
        return None if admin is None else admin.settings(source).max_deliveries
    return None
