"""The exceptions of jmsjca: one tree, names from Jakarta Messaging.

::

    JMSError
    ├── ConfigurationError (ValueError)
    │   ├── InvalidURLError
    │   │   └── WrongProtocolError
    │   ├── UnknownSchemeError
    │   ├── InvalidOptionError
    │   ├── InvalidActivationSpecError
    │   └── InvalidRedeliveryHandlingError
    ├── ActivationFailedError
    │   └── ActivationTimeoutError (TimeoutError)
    ├── DataHandlerError (ValueError)
    │   └── UnknownBusinessObjectError (LookupError)
    ├── IllegalStateError (RuntimeError)
    ├── InvalidArgumentError (ValueError)
    │   └── ArgumentTypeError (TypeError)
    ├── InvalidAttributeError (AttributeError)
    ├── InvalidClientIDError (ValueError)
    │   └── MissingClientIDError (IllegalStateError)
    ├── InvalidDestinationError (ValueError)
    ├── InvalidSelectorError (ValueError)
    ├── MessageEOFError (EOFError)
    ├── MessageFormatError (ValueError)
    ├── MessageNotReadableError
    ├── MessageNotWriteableError
    ├── NameNotFoundError (LookupError)
    ├── NotSupportedError (NotImplementedError)
    ├── ProviderNotInstalledError (ImportError)
    ├── ConnectionLostError (ConnectionError)
    ├── JMSSecurityError (PermissionError)
    ├── Reject
    ├── ReplyTimeoutError (TimeoutError)
    ├── ResourceAllocationError
    │   └── PoolTimeoutError (TimeoutError)
    ├── Retry
    ├── StoreError
    ├── TransactionRolledBackError
    └── TransactionInDoubtError

If a builtin exception fits, it is the second base: ``except ValueError`` catches an invalid URL. The exception of the
client library or of the store, if any, is the ``__cause__``. Handlers of listeners raise `Reject` and `Retry` to decide
about the message that they got.
"""

import datetime as dt

__all__ = [
    "ActivationFailedError",
    "ActivationTimeoutError",
    "ArgumentTypeError",
    "ConfigurationError",
    "ConnectionLostError",
    "DataHandlerError",
    "IllegalStateError",
    "InvalidActivationSpecError",
    "InvalidArgumentError",
    "InvalidAttributeError",
    "InvalidClientIDError",
    "InvalidDestinationError",
    "InvalidOptionError",
    "InvalidRedeliveryHandlingError",
    "InvalidSelectorError",
    "InvalidURLError",
    "JMSError",
    "JMSSecurityError",
    "MessageEOFError",
    "MessageFormatError",
    "MessageNotReadableError",
    "MessageNotWriteableError",
    "MissingClientIDError",
    "NameNotFoundError",
    "NotSupportedError",
    "PoolTimeoutError",
    "ProviderNotInstalledError",
    "Reject",
    "ReplyTimeoutError",
    "ResourceAllocationError",
    "Retry",
    "StoreError",
    "TransactionInDoubtError",
    "TransactionRolledBackError",
    "UnknownBusinessObjectError",
    "UnknownSchemeError",
    "WrongProtocolError",
    "excerpt",
]


class JMSError(Exception):
    """The base class of all exceptions that jmsjca raises deliberately."""


class ConfigurationError(JMSError, ValueError):
    """The configuration is invalid; the message has the field, the value and the remedy."""


class InvalidURLError(ConfigurationError):
    """A connection URL cannot be parsed, or its host or path cannot be used."""


class WrongProtocolError(InvalidURLError):
    """The server at the host and port of a URL speaks another protocol: the port or the scheme is wrong."""


class UnknownSchemeError(ConfigurationError):
    """No provider is registered for the scheme of a connection URL."""


class InvalidOptionError(ConfigurationError):
    """An option is unknown or has an invalid value."""


class InvalidActivationSpecError(ConfigurationError):
    """An activation spec has invalid fields; the message lists all of them."""


class InvalidRedeliveryHandlingError(ConfigurationError):
    """A redelivery handling cannot be parsed; the message has the element, its number and the remedy."""


class ActivationFailedError(JMSError):
    """Listeners have stopped permanently; the message has each with its reason."""


class ActivationTimeoutError(ActivationFailedError, TimeoutError):
    """Listeners are not up in time; the message has each with the error of its latest attempt. They go on trying."""


class DataHandlerError(JMSError, ValueError):
    """A data handler cannot convert a body or a business object; the message has the attribute and the value."""


class UnknownBusinessObjectError(DataHandlerError, LookupError):
    """Neither the message body nor the caller names the type of the business object."""


class IllegalStateError(JMSError, RuntimeError):
    """The state of the object does not allow the call: it is closed, finished, or belongs to another unit of work."""


class InvalidArgumentError(JMSError, ValueError):
    """An argument of a call has a value that it cannot have; the message has the argument, the value and the remedy."""


class ArgumentTypeError(InvalidArgumentError, TypeError):
    """An argument of a call has a type that it cannot have."""


class InvalidAttributeError(JMSError, AttributeError):
    """An attribute does not exist, cannot be set, or belongs to an object that was not awaited."""


class InvalidClientIDError(JMSError, ValueError):
    """A required client id is missing, or the broker refuses it."""


class MissingClientIDError(InvalidClientIDError, IllegalStateError):
    """A durable subscription needs a client id, and the connection has none (JMS 3.1, section 6.1.2)."""


class InvalidDestinationError(JMSError, ValueError):
    """The destination does not exist, cannot be used here, or is not a destination."""


class InvalidSelectorError(JMSError, ValueError):
    """The message selector is not valid."""


class MessageEOFError(JMSError, EOFError):
    """A stream or bytes message has nothing left to read."""


class MessageFormatError(JMSError, ValueError):
    """A value, a property or a body does not have the requested type, or cannot be decoded."""


class MessageNotReadableError(JMSError):
    """A stream or bytes message is in write mode; call ``reset()`` to read it."""


class MessageNotWriteableError(JMSError):
    """A received message is read-only until its body or its properties are cleared."""


class NameNotFoundError(JMSError, LookupError):
    """No object is bound to the name."""


class NotSupportedError(JMSError, NotImplementedError):
    """The provider or its broker does not support the operation; see its capabilities."""


class ProviderNotInstalledError(JMSError, ImportError):
    """The client library of a provider is not installed; the message has the ``pip install`` command."""


class ConnectionLostError(JMSError, ConnectionError):
    """The connection is lost, and its open units of work with it: uncommitted messages will be redelivered."""


class JMSSecurityError(JMSError, PermissionError):
    """The broker refuses the login, its certificate is not trusted, or a password would be sent unencrypted."""


class Reject(JMSError):  # noqa: N818  # a decision, as the handler words it
    """Raised by a handler: the message can never be processed, so it is dead-lettered at once.

    It is moved to the target of the listener's redelivery handling, ``3:1000; 5:move(queue:dlq.$)`` for instance, with
    the reason in its property ``JMS_Sun_JMSJCA_ExceptionMessage``. Without such a target it is deleted, with a warning
    in the log.

    Args:
        reason: The reason, for the dead letter and the log.

    Attributes:
        reason: The same.

    Raises:
        ConfigurationError: The reason is not a text.
    """

    def __init__(self, reason: str) -> None:
        self.reason = _reason(reason, "Reject")
        super().__init__(reason)


class ReplyTimeoutError(JMSError, TimeoutError):
    """No reply to a request arrived in time."""


class ResourceAllocationError(JMSError):
    """A resource is exhausted: disk space, the timeout of a lock, a limit."""


class PoolTimeoutError(ResourceAllocationError, TimeoutError):
    """All connections of a pool are borrowed, and none was returned in time."""


class Retry(JMSError):  # noqa: N818  # a decision, as the handler words it
    """Raised by a handler: the message cannot be processed now, so it is redelivered later.

    The unit is rolled back, and the delivery counts as a failed one: the redelivery handling moves or deletes the
    message after as many redeliveries as always.

    Args:
        reason: The reason, for the log and, should the message be moved later, for the dead letter.
        delay: Seconds until the redelivery, instead of the delay of the redelivery handling; 0 for none, None for the
            delay of the redelivery handling.

    Attributes:
        reason: The same.
        delay: The same.

    Raises:
        ConfigurationError: The reason is not a text, or the delay is not a number from 0 to 2,147,483.647 (nearly 25
            days).
    """

    def __init__(self, reason: str = "", *, delay: float | dt.timedelta | None = None) -> None:
        self.reason = _reason(reason, "Retry")
        self.delay = None if delay is None else _delay(delay)
        super().__init__(reason or "The handler asked for a redelivery.")


class StoreError(JMSError):
    """The file of an embedded broker cannot be used: corrupted, of another program, too new, or unreadable."""


class TransactionRolledBackError(JMSError):
    """The commit failed: nothing was sent, and the received messages will be redelivered."""


class TransactionInDoubtError(JMSError):
    """The outcome of the commit is unknown. It is never assumed to be either success or failure.

    Either everything happened, or the received messages are redelivered and nothing was sent, unless the text says
    otherwise. Do the work again only if it may be done twice: with a duplicate id, or with an inbox at the receiver.
    """


_MAX_DELAY = (2**31 - 1) / 1000  # seconds, as in a redelivery handling


def _reason(reason: object, kind: str) -> str:
    if isinstance(reason, str):
        return reason
    raise ConfigurationError(f"The reason of {kind} is a text, not {reason!r:.100}. For a delay, raise Retry(delay=5).")


def _delay(delay: object) -> float:
    delay = delay.total_seconds() if isinstance(delay, dt.timedelta) else delay
    if isinstance(delay, int | float) and not isinstance(delay, bool) and 0 <= delay <= _MAX_DELAY:
        return float(delay)
    raise ConfigurationError(f"The delay of Retry is a number of seconds from 0 to {_MAX_DELAY}, not {delay!r:.100}.")


def excerpt(value: object, limit: int = 40) -> str:
    r"""Return the beginning of a text with control characters escaped: a newline as ``\n``, an escape as ``\x1b``.

    Args:
        value: The value; its `str` is used.
        limit: The maximum number of characters of the value; with escapes the result has up to ten times as many.
    """
    text = str(value)
    cut = repr(text[:limit])[1:-1]
    return f"{cut}…" if len(text) > limit else cut
