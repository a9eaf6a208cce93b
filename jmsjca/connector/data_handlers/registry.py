"""Data handlers: their contract, and those that are known by MIME type."""

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol, cast

from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.data_handlers.flat_text import DelimitedDataHandler, FixedWidthDataHandler
from jmsjca.connector.data_handlers.json_text import JSONDataHandler
from jmsjca.connector.data_handlers.name_value_text import NameValueDataHandler
from jmsjca.connector.data_handlers.xml_text import XMLDataHandler
from jmsjca.connector.definitions import BusinessObjectDefinitions
from jmsjca.errors import ConfigurationError, excerpt

__all__ = ["DataHandler", "DataHandlers", "data_handler", "data_handler_of_class"]


class DataHandler(Protocol):
    """A conversion between message bodies of one MIME type and business objects."""

    def to_business_object(self, content: str | bytes, *, type: str | None = None) -> BusinessObject:
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


_GROUP = "jmsjca.data_handlers"
_Factory = Callable[[BusinessObjectDefinitions | None], DataHandler]
_OF_DEFINITIONS: Mapping[str, Callable[[BusinessObjectDefinitions], DataHandler]] = {
    "text/delimited": DelimitedDataHandler,
    "text/fixedwidth": FixedWidthDataHandler,
}
_OTHERS: Mapping[str, _Factory] = {
    "application/json": JSONDataHandler,
    "application/xml": XMLDataHandler,
    "text/namevalue": NameValueDataHandler,
    "text/xml": XMLDataHandler,
}


def data_handler(mime_type: str, definitions: BusinessObjectDefinitions | None = None) -> DataHandler:
    """Return a data handler for a MIME type.

    A package adds one by an entry point of the group ``jmsjca.data_handlers``: its name is the MIME type, its object a
    class or function that returns the handler. It takes precedence over a built-in handler of the same type.

    Args:
        mime_type: The MIME type, in any case; parameters (``; charset=utf-8``) are ignored.
        definitions: The definitions of the business objects, for the built-in handlers; delimited and fixed-width text
            need them. With definitions, each handler refuses business objects that do not satisfy them.

    Raises:
        ConfigurationError: No data handler is registered for the MIME type, it needs definitions, or defusedxml is not
            installed.
    """
    name = mime_type.partition(";")[0].strip().lower()
    plugins = {point.name.lower(): point for point in entry_points(group=_GROUP)}
    if name in plugins:
        return cast("DataHandler", plugins[name].load()())
    if name in _OTHERS:
        return _OTHERS[name](definitions)
    if name in _OF_DEFINITIONS and definitions is not None:
        return _OF_DEFINITIONS[name](definitions)
    if name in _OF_DEFINITIONS:
        raise ConfigurationError(f"The data handler of {name} needs definitions: data_handler({name!r}, definitions).")
    known = ", ".join(sorted(_OTHERS.keys() | _OF_DEFINITIONS.keys() | plugins.keys()))
    raise ConfigurationError(
        f"No data handler for MIME type {excerpt(mime_type)!r}. There are: {known}. Register another one by an entry "
        f"point of the group {_GROUP}."
    )


def data_handler_of_class(name: str, definitions: BusinessObjectDefinitions | None = None) -> DataHandler:
    """Return a data handler of a class that is not registered.

    Args:
        name: The class as ``package.module:Class``. It is called with the definitions.
        definitions: The definitions of the business objects; None if there are no definitions.

    Raises:
        ConfigurationError: The class cannot be imported or called, or its objects are not data handlers.
    """
    try:
        made: object = EntryPoint(name, name, _GROUP).load()(definitions)
    except Exception as error:
        raise ConfigurationError(
            f"The data handler class {excerpt(name)!r} cannot be loaded: {excerpt(error, 200)}. Write "
            "package.module:Class."
        ) from error
    if not (hasattr(made, "to_business_object") and hasattr(made, "to_content")):
        raise ConfigurationError(f"{excerpt(name)!r} is no data handler: it lacks to_business_object or to_content.")
    return cast("DataHandler", made)


class DataHandlers:
    """The data handlers of a connector: the default one, and those that meta-objects name. Thread-safe.

    Args:
        default: The data handler that is used if none is named.
        definitions: The definitions of the business objects; None for none.
    """

    def __init__(self, default: DataHandler, definitions: BusinessObjectDefinitions | None) -> None:
        self.default = default
        self._definitions = definitions
        self._named: dict[tuple[str | None, str | None], DataHandler] = {(None, None): default}

    def named(self, mime_type: str | None, class_name: str | None) -> DataHandler:
        """Return the data handler of a class, else of a MIME type, else the default one.

        Raises:
            ConfigurationError: As `data_handler` and `data_handler_of_class`.
        """
        key = (mime_type, class_name)
        found = self._named.get(key)
        if found is None:
            of_class = data_handler_of_class(class_name, self._definitions) if class_name else None
            found = self._named[key] = of_class or data_handler(str(mime_type), self._definitions)
        return found
