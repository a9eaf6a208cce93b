"""Outcomes of the delivery of an event, and the return codes of polls and requests."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["DeliveryOutcome", "ReturnCode", "ReturnStatus"]


class ReturnCode(StrEnum):
    """The result of a poll for events (the first three) or of a request."""

    SUCCEED = "SUCCEED"
    """The poll ended normally, also when it found no message; or the request succeeded."""
    FAIL = "FAIL"
    """The poll or the request failed; the connector goes on."""
    APPRESPONSETIMEOUT = "APPRESPONSETIMEOUT"
    """The broker, the collaboration or the target application cannot be reached, so the connector restarts."""
    VALCHANGE = "VALCHANGE"
    """The target application changed the business object, which has the new values."""
    MULTIPLE_HITS = "MULTIPLE_HITS"
    """Several objects matched; the business object has the values of the first one."""
    VALDUPES = "VALDUPES"
    """The object exists already."""
    FAIL_RETRIEVE_BY_CONTENT = "FAIL_RETRIEVE_BY_CONTENT"
    """No object has the content that was searched for."""
    BO_DOES_NOT_EXIST = "BO_DOES_NOT_EXIST"
    """The object does not exist."""
    UNABLE_TO_LOGIN = "UNABLE_TO_LOGIN"
    """The target application refused the login."""


@dataclass
class ReturnStatus:
    """The description of a request that did not succeed.

    Attributes:
        text: The text of the error; empty after a success.
    """

    text: str = ""


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
