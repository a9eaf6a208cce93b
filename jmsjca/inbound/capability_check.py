"""Checks of what the broker or this release cannot do for an endpoint: refused, or replaced and logged."""

import logging
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

from jmsjca import spi
from jmsjca.destinations import Destination, Subscription
from jmsjca.errors import JMSError, NotSupportedError, excerpt
from jmsjca.inbound.endpoint import Terms
from jmsjca.redelivery import Move, RedeliveryPolicy

if TYPE_CHECKING:
    from jmsjca.config import ActivationSpec

__all__ = ["Adjustments", "refuse_unavailable", "refuse_unavailable_handling"]

logger = logging.getLogger("jmsjca.inbound")

_Test = Callable[[Terms, spi.Capabilities], bool]

_REFUSED: tuple[tuple[str, _Test], ...] = (
    ("a selector: it lacks the capability selectors", lambda terms, can: bool(terms.selector) and not can.selectors),
    (
        "a durable subscription: it lacks the capability durable",
        lambda terms, can: isinstance(terms.source, Subscription) and terms.source.durable and not can.durable,
    ),
    (
        "messages forwarded as they are acknowledged: it lacks the capability atomic",
        lambda terms, can: terms.forwards and not can.atomic,
    ),
)

_WEAKER: tuple[tuple[str, _Test], ...] = (
    (
        "moves a message by sending, then acknowledging: the broker cannot do both as one (atomic), so it may double.",
        lambda terms, can: isinstance(terms.redelivery.last_action, Move) and not can.atomic,
    ),
    (
        "acknowledges a batch one by one: the broker cannot as one (transacted_receive), so a part may come again.",
        lambda terms, can: terms.batch_size > 0 and not can.transacted_receive,
    ),
)

_OTHERWISE: tuple[tuple[str, _Test], ...] = (
    (
        "has one receiver in mode sync: each of several would get every message of the topic.",
        lambda terms, _: terms.mode == "sync" and terms.destination.kind == "topic",
    ),
    (
        "refuses sends in the unit of a message: the broker cannot acknowledge and send as one (atomic).",
        lambda terms, can: terms.transacted and not can.atomic,
    ),
    (
        "counts redeliveries by itself, to the end of the process: the broker does not (delivery_count).",
        lambda terms, can: bool(terms.redelivery.rules) and not can.delivery_count,
    ),
)


class Adjustments:
    """Finds out what is not as asked for, at each connection; each reason is told once.

    Args:
        name: The endpoint's display name.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._told: set[str] = set()

    def check(self, terms: Terms, link: spi.Connection) -> None:
        """Refuse what cannot be done on a connection, and tell what is done otherwise.

        Raises:
            NotSupportedError: The broker cannot do something for which there is no other way.
        """
        can = link.capabilities
        refused = [what for what, holds in _REFUSED if holds(terms, can)]
        if refused:
            raise NotSupportedError(f"The broker of {self._name} cannot have {', nor '.join(refused)}.")
        for level, reasons in ((logging.WARNING, _WEAKER), (logging.INFO, _OTHERWISE)):
            for reason, holds in reasons:
                if holds(terms, can):
                    self._tell(level, reason)

    def compare_limits(self, terms: Terms, link: spi.Connection) -> None:
        """Tell if the broker takes messages away before the redelivery handling comes to its end.

        A broker on a network is asked meanwhile: it may take long to answer, and messages do not wait for that.
        """
        if not (terms.redelivery.highest_index and link.capabilities.admin):
            return
        if link.capabilities.configurable:
            self._compare_limits(terms, link)
        else:
            Thread(target=self._compare_limits, args=(terms, link), name=f"jmsjca {self._name}", daemon=True).start()

    def _compare_limits(self, terms: Terms, link: spi.Connection) -> None:
        highest, most = terms.redelivery.highest_index, _most_deliveries(terms.destination, link)
        if most is not None and most <= highest:
            self._tell(
                logging.WARNING,
                f"has a redelivery handling that ends with the redelivery {highest}, but the broker delivers a message "
                f"{most} times at most: set max_deliveries to {highest + 1} at least.",
            )

    def _tell(self, level: int, reason: str) -> None:
        if reason not in self._told:
            self._told.add(reason)
            logger.log(level, "%s %s", self._name, reason)


def _most_deliveries(source: Destination, link: spi.Connection) -> int | None:
    """How often the broker delivers a message; None if it says nothing, or has no limit."""
    with suppress(JMSError):
        admin = link.admin()
        return None if admin is None else admin.settings(source).max_deliveries
    return None


_LOOKUP = "lookup://"
_MOVING = "moving messages to a destination that is looked up"


def refuse_unavailable(spec: "ActivationSpec") -> None:
    """Refuse what cannot be done, so that nothing asked for is silently left out.

    Args:
        spec: The spec in force.

    Raises:
        NotSupportedError: Something is asked for that is not there yet; all of it is listed.
    """
    missing = [what for what, asked in _asked_for(spec).items() if asked]
    if missing:
        raise NotSupportedError(
            f"{spec.destination_type}:{spec.destination}: {', '.join(missing)} is not available in this release."
        )


def refuse_unavailable_handling(policy: RedeliveryPolicy) -> None:
    """Refuse what cannot be done with one message.

    Args:
        policy: What its handler asks for.

    Raises:
        NotSupportedError: It is not there yet.
    """
    if _moves_to_looked_up(policy):
        raise NotSupportedError(f"{excerpt(policy.text, 100)}: {_MOVING} is not available in this release.")


def _asked_for(spec: "ActivationSpec") -> dict[str, bool]:
    return {
        f"transaction={spec.transaction!r} (container-managed transactions will bring it)": spec.transaction
        in ("required", "bean"),
        "a destination that is looked up": spec.destination.startswith(_LOOKUP),
        _MOVING: _moves_to_looked_up(spec.redelivery_policy),
    }


def _moves_to_looked_up(policy: RedeliveryPolicy) -> bool:
    last = policy.last_action
    return isinstance(last, Move) and last.name.startswith(_LOOKUP)
