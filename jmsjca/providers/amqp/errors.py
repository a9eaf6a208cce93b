"""AMQP error conditions as JMS errors."""

from typing import Any

from proton import Transport

from jmsjca.errors import (
    ConnectionLostError,
    InvalidClientIDError,
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    NotSupportedError,
    ResourceAllocationError,
)

__all__ = ["condition_text", "connection_error", "is_message_refusal", "link_error", "transport_error"]

_SASL_TEMPORARY = 4  # the outcome sys-temp of a login (AMQP 1.0, part 5)

_LINK_ERRORS: dict[str, type[JMSError]] = {
    "amqp:not-found": InvalidDestinationError,
    "amqp:invalid-field": InvalidDestinationError,
    "amqp:not-implemented": NotSupportedError,
    "amqp:unauthorized-access": JMSSecurityError,
    "amqp:resource-limit-exceeded": ResourceAllocationError,
    "amqp:link:message-size-exceeded": ResourceAllocationError,
}

# With these a broker ends the link, or its session, over which a message came that it does not take.
_MESSAGE_REFUSALS = {
    "amqp:decode-error",
    "amqp:invalid-field",
    "amqp:not-allowed",
    "amqp:not-found",
    "amqp:not-implemented",
    "amqp:precondition-failed",
    "amqp:resource-limit-exceeded",
    "amqp:unauthorized-access",
    "amqp:link:message-size-exceeded",
}


def condition_text(condition: Any) -> str:
    """The condition as text, bounded: it comes from outside."""
    if condition is None:
        return "no reason given"
    return f"{condition.name}: {condition.description or 'no description'}"[:500]


def connection_error(condition: Any, client_id: str) -> JMSError:
    """The error of a connection that the broker closed or that broke.

    Args:
        condition: Why.
        client_id: What the connection called itself.
    """
    text = condition_text(condition)
    name = condition.name if condition else ""
    if name == "amqp:unauthorized-access":
        return JMSSecurityError(f"The broker refuses the login: {text}")
    if name == "amqp:invalid-field" and "container-id" in str(condition.info):
        return InvalidClientIDError(f"The broker refuses the client id {client_id[:100]!r}: {text}")
    if name == "amqp:connection:redirect":
        return ConnectionLostError(
            f"The broker names another host, which must stand in the URL: {condition.info!r:.200}"
        )
    return ConnectionLostError(f"The connection to the broker ended: {text}")


def transport_error(transport: Transport, client_id: str) -> JMSError:
    """The error of a connection that broke, or that did not get past its login.

    Args:
        transport: What it ran on.
        client_id: What the connection called itself.
    """
    if transport.sasl().outcome == _SASL_TEMPORARY:  # proton tells it like a wrong password
        return ConnectionLostError("The broker cannot check the login for now.")
    return connection_error(transport.condition, client_id)


def link_error(condition: Any, what: str) -> JMSError:
    """The error of a link that the broker refused or ended.

    Args:
        condition: Why.
        what: What the link was for, to begin the text with.
    """
    error = _LINK_ERRORS.get(condition.name if condition else "", JMSError)
    return error(f"{what}: {condition_text(condition)}")


def is_message_refusal(condition: Any) -> bool:
    """True if the end of a link tells that the broker did not take a message, and not what else happened to the link.

    Args:
        condition: Why it ended.
    """
    return condition is not None and condition.name in _MESSAGE_REFUSALS
