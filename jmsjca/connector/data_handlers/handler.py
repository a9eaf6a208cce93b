"""The contract of data handlers."""

from typing import Protocol

from jmsjca.connector.business_objects import BusinessObject

__all__ = ["DataHandler"]


class DataHandler(Protocol):
    """A conversion between message bodies of one MIME type and business objects."""

    def to_business_object(self, content: str | bytes, *, type: str | None = None) -> BusinessObject:  # noqa: A002
        """Return the business object of a message body.

        Args:
            content: The body of a text or bytes message.
            type: The type of the business object; None if the body names it.

        Raises:
            UnknownBusinessObjectError: Neither the body nor the caller names the type.
            DataHandlerError: The body cannot be converted.
        """
        ...

    def to_content(self, business_object: BusinessObject) -> str | bytes:
        """Return the message body of a business object.

        Raises:
            DataHandlerError: An attribute has a value that the format cannot represent.
        """
        ...
