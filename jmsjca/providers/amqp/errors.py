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
from jmsjca.providers.common.network import LOGIN_REMEDY

__all__ = ["condition_text", "connection_error", "is_message_refusal", "link_error", "transport_error"]

_SASL_TEMPORARY = 4  # the SASL outcome sys-temp (AMQP 1.0, part 5)

_LINK_ERRORS: dict[str, type[JMSError]] = {
    "amqp:not-found": InvalidDestinationError,
    "amqp:invalid-field": InvalidDestinationError,
    "amqp:not-implemented": NotSupportedError,
    "amqp:unauthorized-access": JMSSecurityError,
    "amqp:resource-limit-exceeded": ResourceAllocationError,
    "amqp:link:message-size-exceeded": ResourceAllocationError,
}

# Conditions with which a broker ends a link, or its session, to reject a message.
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
    """Return a condition as text of bounded length: the peer chooses it."""
    if condition is None:
        return "no reason given"
    return f"{condition.name}: {condition.description or 'no description'}"[:500]


def connection_error(condition: Any, client_id: str) -> JMSError:
    """Return the error of a connection that the broker closed or that broke.

    Args:
        condition: The error condition; None without one.
        client_id: The container id of the connection.
    """
    text = condition_text(condition)
    name = condition.name if condition else ""
    if name == "amqp:unauthorized-access":
        return JMSSecurityError(f"The broker refuses the login: {text}. {LOGIN_REMEDY}")
    if name == "amqp:invalid-field" and "container-id" in str(condition.info):
        return InvalidClientIDError(
            f"The broker refuses the client id {client_id[:100]!r}: {text}. Processes share a durable subscription with"
            " subscription_shared=True, which needs no client id."
        )
    if name == "amqp:connection:redirect":
        return ConnectionLostError(
            f"The broker names another host, which must stand in the URL: {condition.info!r:.200}"
        )
    return ConnectionLostError(f"The connection to the broker ended: {text}")


def transport_error(transport: Transport, client_id: str) -> JMSError:
    """Return the error of a connection that broke, or that was not authenticated.

    Args:
        transport: The transport of the connection.
        client_id: The container id of the connection.
    """
    if transport.sasl().outcome == _SASL_TEMPORARY:  # proton reports it like a wrong password
        return ConnectionLostError("The broker cannot check the login for now.")
    return connection_error(transport.condition, client_id)


def link_error(condition: Any, what: str) -> JMSError:
    """Return the error of a link that the broker refused or ended.

    Args:
        condition: The error condition; None without one.
        what: The purpose of the link, which begins the error message.
    """
    error = _LINK_ERRORS.get(condition.name if condition else "", JMSError)
    return error(f"{what}: {condition_text(condition)}")


def is_message_refusal(condition: Any) -> bool:
    """Return True if a link ended because the broker rejected a message.

    Args:
        condition: The error condition of the link; None without one.
    """
    return condition is not None and condition.name in _MESSAGE_REFUSALS
