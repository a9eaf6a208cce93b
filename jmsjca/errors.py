"""The exceptions of jmsjca: one tree, names from Jakarta Messaging.

::

    JMSError
    ├── ConfigurationError (ValueError)
    │   ├── InvalidURLError
    │   ├── UnknownSchemeError
    │   ├── InvalidOptionError
    │   ├── InvalidActivationSpecError
    │   └── InvalidRedeliveryHandlingError
    ├── IllegalStateError (RuntimeError)
    ├── InvalidClientIDError (ValueError)
    ├── InvalidDestinationError (ValueError)
    ├── InvalidSelectorError (ValueError)
    ├── MessageEOFError (EOFError)
    ├── MessageFormatError (ValueError)
    ├── MessageNotReadableError
    ├── MessageNotWriteableError
    ├── NotSupportedError (NotImplementedError)
    ├── ProviderNotInstalledError (ImportError)
    ├── ConnectionLostError (ConnectionError)
    ├── JMSSecurityError (PermissionError)
    ├── ResourceAllocationError
    ├── StoreError
    ├── TransactionRolledBackError
    └── TransactionInDoubtError

Where a builtin fits it is the second base, so ``except ValueError`` catches a bad URL. The exception of the client
library or of the store, if there was one, is the ``__cause__``.
"""

__all__ = [
    "ConfigurationError",
    "ConnectionLostError",
    "IllegalStateError",
    "InvalidActivationSpecError",
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
    "NotSupportedError",
    "ProviderNotInstalledError",
    "ResourceAllocationError",
    "StoreError",
    "TransactionInDoubtError",
    "TransactionRolledBackError",
    "UnknownSchemeError",
    "excerpt",
]


class JMSError(Exception):
    """The root: every exception that jmsjca raises on purpose is one of these."""


class ConfigurationError(JMSError, ValueError):
    """Something that was configured cannot be used; the message names the field, the value and the remedy."""


class InvalidURLError(ConfigurationError):
    """A connection URL does not parse, or names a place that cannot be used."""


class UnknownSchemeError(ConfigurationError):
    """No provider is registered for the scheme of a connection URL."""


class InvalidOptionError(ConfigurationError):
    """An option is unknown or its value cannot be used."""


class InvalidActivationSpecError(ConfigurationError):
    """An activation spec has wrong fields; the message lists every one of them."""


class InvalidRedeliveryHandlingError(ConfigurationError):
    """A redelivery handling cannot be read; the message names the element, its number and the remedy."""


class IllegalStateError(JMSError, RuntimeError):
    """The call does not fit the state of the object: closed, finished, joined to another unit."""


class InvalidClientIDError(JMSError, ValueError):
    """The client id is missing where one is needed, or is refused."""


class InvalidDestinationError(JMSError, ValueError):
    """The destination does not exist, cannot be used here, or is none."""


class InvalidSelectorError(JMSError, ValueError):
    """The message selector is not valid."""


class MessageEOFError(JMSError, EOFError):
    """A stream or bytes message has nothing left to read."""


class MessageFormatError(JMSError, ValueError):
    """A value, a property or a body has not the type that was asked for, or cannot be decoded."""


class MessageNotReadableError(JMSError):
    """A stream or bytes message is being written; it can be read after ``reset()``."""


class MessageNotWriteableError(JMSError):
    """A received message is read-only until its body or its properties are cleared."""


class NotSupportedError(JMSError, NotImplementedError):
    """The provider or the broker behind the connection cannot do this; its capabilities say so."""


class ProviderNotInstalledError(JMSError, ImportError):
    """The client library of a provider is missing; the message holds the ``pip install`` line."""


class ConnectionLostError(JMSError, ConnectionError):
    """The connection is gone. What was open on it is lost: uncommitted work will come again."""


class JMSSecurityError(JMSError, PermissionError):
    """The broker refuses the user, its certificate is not to be trusted, or a password would travel in the clear."""


class ResourceAllocationError(JMSError):
    """A resource ran out: disk space, the wait for a lock, a bound."""


class StoreError(JMSError):
    """The file of an embedded broker cannot be used: corrupted, foreign, too new, unreadable."""


class TransactionRolledBackError(JMSError):
    """The commit did not happen: nothing was sent, and what was received will come again."""


class TransactionInDoubtError(JMSError):
    """The outcome of the commit is not known: it may or may not have happened. Never taken for either."""


def excerpt(value: object, limit: int = 40) -> str:
    r"""Give the beginning of a text, with a newline as ``\n``, an escape as ``\x1b``, and so on.

    Args:
        value: Shown as its `str`.
        limit: How many characters of it at most; escapes make that up to ten times as many.
    """
    text = str(value)
    cut = repr(text[:limit])[1:-1]
    return f"{cut}…" if len(text) > limit else cut
