"""Outcomes of the delivery of an event, and the return code of a poll."""

from enum import StrEnum

__all__ = ["DeliveryOutcome", "ReturnCode"]


class ReturnCode(StrEnum):
    """The result of one poll for events."""

    SUCCEED = "SUCCEED"
    """The poll ended normally, also when it found no message."""
    FAIL = "FAIL"
    """The poll failed; the connector continues with the next poll."""
    APPRESPONSETIMEOUT = "APPRESPONSETIMEOUT"
    """The broker or the collaboration cannot be reached; the connector restarts or terminates."""


class DeliveryOutcome(StrEnum):
    """The result of the delivery of one business object to a collaboration."""

    SUCCEED = "SUCCEED"
    """The collaboration took the business object."""
    FAIL = "FAIL"
    """The collaboration rejected the business object."""
    NO_SUBSCRIPTION_FOUND = "NO_SUBSCRIPTION_FOUND"
    """No collaboration subscribes to the business object."""
    CONNECTOR_NOT_ACTIVE = "CONNECTOR_NOT_ACTIVE"
    """The connector is paused or stopped, so the message must be kept."""

    @property
    def return_code(self) -> ReturnCode:
        """The return code of the poll: only an inactive connector ends it, since other failures concern one event."""
        if self is DeliveryOutcome.CONNECTOR_NOT_ACTIVE:
            return ReturnCode.APPRESPONSETIMEOUT
        return ReturnCode.SUCCEED
